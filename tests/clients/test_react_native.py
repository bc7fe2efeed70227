"""The guide for React Native: its files compile against the client and the types of React Native.

``make generators`` installs the compiler and the types, and CI does.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.needed import lacking
from tests.sources import ROOT

MODULES: Final = ROOT / ".venv" / "node" / "node_modules"
CLIENT: Final = ROOT / "clients" / "typescript"
FILES: Final = ("server.ts", "payments.ts", "PayScreen.tsx")
STRICT: Final = {
    "module": "esnext",
    "moduleResolution": "bundler",
    "target": "es2022",
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "skipLibCheck": True,
}

pytestmark = pytest.mark.integration


def compiled(folder: Path, options: dict[str, object], *files: str) -> None:
    """Compiles files of a folder; what the compiler says is in the failure."""
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": {**STRICT, **options}, "files": files}))
    command = [str(MODULES / ".bin" / "tsc"), "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_guide_compiles(tmp_path: Path) -> None:
    """Who copies the three files has an app that compiles: nothing in them is named otherwise than in the client."""
    if not (MODULES / "@types" / "react-native").is_dir():
        lacking("the types of React Native are not installed: make generators")
    (tmp_path / "node_modules").symlink_to(MODULES)
    package = tmp_path / "app" / "node_modules" / "payrelay-client"
    package.mkdir(parents=True)
    (package / "package.json").write_bytes((CLIENT / "package.json").read_bytes())
    # What stands among the packages itself, the compiler takes as built.
    shutil.copytree(CLIENT / "src", tmp_path / "client" / "src")
    shapes = {"declaration": True, "emitDeclarationOnly": True, "rootDir": "src", "types": ["node"]}
    compiled(tmp_path / "client", {**shapes, "outDir": str(package / "dist")}, "src/index.ts", "src/node.ts")

    page = (ROOT / "docs" / "react-native.md").read_text()
    blocks = re.findall(r"```tsx?[^\n]*\n// (\S+)\n(.*?)```", page, re.DOTALL)
    assert [name for name, _ in blocks] == list(FILES)
    for name, code in blocks:
        (tmp_path / "app" / name).write_text(code)
    native = {"noEmit": True, "jsx": "react-native", "lib": ["es2022"], "types": ["react-native"]}
    compiled(tmp_path / "app", native, *FILES)
