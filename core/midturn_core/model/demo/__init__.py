"""The built-in demo model: no key, no network, always labelled DEMO.

It is a script, not a model: it understands a few plain requests, drives the real tools on the
user's own folder, and says what it heard. What it answers depends on the history alone.
"""

from midturn_core.model.demo.model import DemoModel
from midturn_core.model.demo.site import DemoSite

__all__ = ["DemoModel", "DemoSite"]
