"""The version of Midturn; the package's metadata is made from it."""

VERSION = "0.1.0"
