"""Where the model is asked, as whom, and how long anything is waited for."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from midturn_core.config import ModelConfig
from midturn_core.errors import ConfigError
from midturn_core.model.retry_policy import RetryPolicy

SERVICE_ADDRESS = "https://api.anthropic.com"
IDLE_TIMEOUT = 120.0
"""Seconds without a single byte after which a request counts as dead; ``ping`` counts as life."""
CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Where to ask, as whom, and how long to wait. Secrets stay out of ``repr``."""

    model: str
    base_url: str = field(default=SERVICE_ADDRESS, repr=False)
    """Without a trailing slash and without ``/v1``; may hold a password, see ``address``."""
    api_key: str = field(default="", repr=False)
    """Wins over ``auth_token`` when both are set."""
    auth_token: str = field(default="", repr=False)
    idle_timeout: float = IDLE_TIMEOUT
    connect_timeout: float = CONNECT_TIMEOUT
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @classmethod
    def from_config(cls, config: ModelConfig) -> ClientSettings:
        """The settings of a configuration.

        Raises:
            ConfigError: ``base_url`` is not an http(s) address.
        """
        return cls(
            model=config.name,
            base_url=normalise_base_url(config.base_url),
            api_key=config.api_key.strip(),
            auth_token=config.auth_token.strip(),
        )

    @property
    def address(self) -> str:
        """The base URL as it may be shown: without a user and a password."""
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def redact(self, text: str) -> str:
        """``text`` without the secrets, should a service or a library quote them."""
        for secret in (self.api_key, self.auth_token, urlsplit(self.base_url).password):
            if secret:
                text = text.replace(secret, "***")
        return text


def normalise_base_url(url: str) -> str:
    """``url`` as the SDK wants it: with or without trailing slash and ``/v1`` it is the same.

    Raises:
        ConfigError: it is not an http(s) address with a host.
    """
    text = url.strip() or SERVICE_ADDRESS
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(
            f"[model] base_url (or ANTHROPIC_BASE_URL) is {url!r}: "
            "expected an address such as https://host or http://127.0.0.1:8080/prefix"
        )
    text = text.rstrip("/").removesuffix("/messages").rstrip("/")
    return text.removesuffix("/v1").rstrip("/")
