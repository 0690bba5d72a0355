# SPDX-License-Identifier: MIT
"""What tokens tell: nested conditional operators, asserts."""
import re

TOKEN = re.compile(r"\\\n|\n|[?,;(){}\[\]#]|[A-Za-z_]\w*|\S")
OPENS, CLOSES = "([{", ")]}"


def nested_conditionals(file):
    """Lines with a conditional operator in a branch of another one."""
    found = []
    line = 1
    inside = [False]  # for each open bracket: whether it is within a branch
    here = [0]        # and how many operators its expression has by now
    directive = False
    for match in TOKEN.finditer(file.code):
        token = match.group()
        if token == "\\\n":
            line += 1
        elif token == "\n":
            line += 1
            if directive:
                inside, here, directive = [False], [0], False
        elif token == "#":
            # A macro's body is an expression of its own, wherever it stands.
            if not file.code[:match.start()].rpartition("\n")[2].strip():
                inside, here, directive = [False], [0], True
        elif token in OPENS:
            inside.append(inside[-1] or here[-1] > 0)
            here.append(0)
        elif token in CLOSES:
            if len(here) > 1:
                inside.pop()
                here.pop()
            if token == "}":
                here[-1] = 0
        elif token in ",;":
            here[-1] = 0
        elif token == "?":
            here[-1] += 1
            if here[-1] > 1 or inside[-1]:
                found.append(f"{file.path}:{line}")
    return list(dict.fromkeys(found))


def asserts(file):
    return len(re.findall(r"(?<!\w)assert\s*\(", file.code))
