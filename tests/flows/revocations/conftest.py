from tests.flows.losing import losing, url

__all__ = ["losing", "url"]
