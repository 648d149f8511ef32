"""Whether the Hugging Face hub answers, asked once and briefly.

The hub's own clients retry for most of a minute, for every file, before they look into their cache. Whoever is about
to call them asks here first, and then keeps them to the cache where there is no network.
"""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request

from huggingface_hub import constants

SECONDS = 5.0
"""How long the hub may take to answer."""


def hub_silence() -> str:
    """Return why the hub gives no answer; empty if it does."""
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    host = constants.ENDPOINT
    try:
        urllib.request.urlopen(urllib.request.Request(host, method="HEAD"), timeout=SECONDS).close()
    except urllib.error.HTTPError:
        return ""
    except urllib.error.URLError as error:
        reason = error.reason
        # Certificates may be set for the hub's client alone: it shall say itself what is wrong with them.
        return "" if isinstance(reason, ssl.SSLError) else f"{host} cannot be reached ({_short(reason)})"
    except (OSError, http.client.HTTPException) as error:
        return f"{host} does not answer ({_short(error)})"
    return ""


def _short(reason: object) -> str:
    return str(getattr(reason, "strerror", None) or reason or "no reason given")
