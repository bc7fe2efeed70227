"""Stores everything that Payrelay remembers. No other layer writes SQL.

Rules of this layer:

1. A noun (``journal``, ``credentials``, ``meta``) is written once, as units of work over the statements in
   ``statements/``. The two engines (``sqlite``, ``postgresql``) carry units out and know no noun.
2. When a write returns, its data is on disk.
3. Tokens, card data and answers lie in the database sealed, or not at all.
"""

from payrelay.store.engine.database import Connecting
from payrelay.store.opening import free_bytes_of, open_database, status_of, watch_server

__all__ = ["Connecting", "free_bytes_of", "open_database", "status_of", "watch_server"]
