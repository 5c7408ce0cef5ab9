#!/usr/bin/env python3
"""Extracts a program from a manual page: the text between .Bd -literal and .Ed, word for word.

    from_manual.py PAGE NUMBER FILE

Of all literal blocks with a main function the one with this number, from 1, becomes the file.
"""
import re
import sys

page, number, file = sys.argv[1:]
with open(page, encoding="utf-8") as source:
    blocks = re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", source.read(), re.M | re.S)
programs = [block for block in blocks if "int main(" in block]
# Undo the escapes of roff.
text = programs[int(number) - 1].replace("\\&", "").replace("\\en", "\\n")
if "\\e" in text or re.search(r"^[.']", text, re.M):
    sys.exit(f"{page}: program {number} has roff in it that this script does not read")
with open(file, "w", encoding="utf-8") as target:
    target.write(text)
