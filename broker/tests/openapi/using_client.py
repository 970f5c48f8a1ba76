"""Imports all that openapi-python-client made, and reads and writes a frame with it."""

import importlib
import pkgutil

import generated

for module in pkgutil.walk_packages(generated.__path__, "generated."):
    importlib.import_module(module.name)

from generated import models

SUBSCRIBE = {"op": "subscribe", "id": "near", "filters": [{"area": {"radius_m": 500.0}, "where": "severity >= 3"}]}
kinds = [name for name in vars(models) if name.startswith("ClientFrame")]
frames = [getattr(models, name) for name in kinds if hasattr(getattr(models, name), "from_dict")]
assert len(frames) >= 7, kinds
written = [kind.from_dict(dict(SUBSCRIBE)).to_dict() for kind in frames if "filters" in kind.__annotations__]
assert written == [SUBSCRIBE], written

for call in ("list_clients", "list_subscriptions", "put_subscription", "publish_events", "get_health"):
    assert any(module.name.endswith(f".{call}") for module in pkgutil.walk_packages(generated.__path__, "generated.")), call
