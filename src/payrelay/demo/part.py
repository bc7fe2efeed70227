"""What the demo brings."""

from typing import Final

from payrelay.parts import Part

PART: Final = Part(commands={"demo": "payrelay.demo.command"})
