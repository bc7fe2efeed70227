"""Adds the project's addresses to the wheel, where whoever builds it says what they are."""

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectUrls(MetadataHookInterface):
    """Reads the address of the repository from PROJECT_URL; without it the wheel names none."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets ``urls`` in the metadata, which pyproject.toml leaves open."""
        home = os.environ.get("PROJECT_URL", "").rstrip("/")
        pages = {
            "Homepage": home,
            "Source": home,
            "Documentation": f"{home}/tree/main/docs",
            "Changelog": f"{home}/blob/main/CHANGELOG.md",
            "Issues": f"{home}/issues",
        }
        metadata["urls"] = pages if home else {}
