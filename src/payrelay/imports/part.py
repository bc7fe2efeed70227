"""What the imports bring."""

from typing import Final

from payrelay.parts import Part

PART: Final = Part(commands={"import": "payrelay.imports.commands.import_existing"})
