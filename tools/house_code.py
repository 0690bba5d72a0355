# SPDX-License-Identifier: MIT
"""What tokens tell: nested conditional operators, several declarations in a statement, asserts."""
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


TYPE = r"(?:(?:const|static|unsigned|signed|long|volatile)\s+)*(?:(?:struct|enum|union)\s+\w+|[a-z]\w*_t|double|float|" \
       r"int|bool|char|long|unsigned)\b"
DECLARATION = re.compile(TYPE + r"\s*(?:const\b\s*)?[\s*]\s*\w+\s*(?:\[\]\s*)*[=,]")


def statements(code):
    """Statements within functions: (offset, text), the text without what stands in brackets."""
    depth, braces, start, text = 0, [], 0, []
    for at, c in enumerate(code):
        if depth == 0 and c == "{" and "=" not in "".join(text):
            in_function = bool(braces and braces[-1]) or "".join(text).rstrip().endswith(")")
            braces.append(in_function)
            start, text = at + 1, []
        elif depth == 0 and c == "}":
            if braces:
                braces.pop()
            start, text = at + 1, []
        elif depth == 0 and c == ";":
            if braces and braces[-1]:
                yield start, "".join(text)
            start, text = at + 1, []
        else:
            depth -= c in CLOSES
            if depth == 0:
                text.append(c)
            depth += c in OPENS


def joined_declarations(file):
    """Lines on which a statement declares more than one variable."""
    found = []
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group()), file.code, flags=re.M)
    for start, text in statements(code):
        stripped = text.lstrip()
        if DECLARATION.match(stripped) and "," in text:
            line = file.line_of(start + len(text) - len(stripped))
            found.append(f"{file.path}:{line} {' '.join(stripped.split())[:60]}")
    return found


def asserts(file):
    return len(re.findall(r"(?<!\w)assert\s*\(", file.code))
