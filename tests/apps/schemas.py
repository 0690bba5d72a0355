# SPDX-License-Identifier: MIT
"""Checks JSON of the program against the files in docs/schemas, for which the keywords below suffice. A field that its
schema does not name is an error here, so that the schemas stay complete; users may meet new fields."""
import functools
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schemas"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}
KEYWORDS = {"$schema", "title", "description", "type", "properties", "required", "items", "enum", "const", "minimum", "oneOf", "allOf", "$ref"}


def is_of(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def read(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def resolve(schema):
    """The schema itself, with the properties of those in allOf."""
    while "$ref" in schema:  # to a file or a part of it
        file, pointer = schema["$ref"].split("#")
        schema = functools.reduce(lambda part, name: part[int(name) if isinstance(part, list) else name],
                                  pointer.split("/")[1:], read(file))
    for part in schema.get("allOf", ()):
        schema = {**schema, "properties": {**resolve(part)["properties"], **schema["properties"]}}
    return schema


def check(value, schema, at="$"):
    """Raises ValueError where the value differs from the schema."""
    schema = resolve(schema)
    if set(schema) - KEYWORDS:
        raise ValueError(f"{at}: unknown keywords {set(schema) - KEYWORDS}")
    kinds = schema.get("type", [])
    if kinds and not any(is_of(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        raise ValueError(f"{at}: {value!r} is not of type {kinds}")
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        raise ValueError(f"{at}: {value!r} is not {schema.get('const', schema.get('enum'))!r}")
    if "minimum" in schema and value < schema["minimum"]:
        raise ValueError(f"{at}: {value!r} is below {schema['minimum']}")
    if "oneOf" in schema:
        check(value, next(s for s in schema["oneOf"] if s["properties"]["kind"]["const"] == value["kind"]), at)
    if isinstance(value, list):
        for i, item in enumerate(value):
            check(item, schema["items"], f"{at}[{i}]")
    elif isinstance(value, dict) and "properties" in schema:
        absent, unknown = set(schema["required"]) - set(value), set(value) - set(schema["properties"])
        if absent or unknown:
            raise ValueError(f"{at}: lacks {sorted(absent)}, and has {sorted(unknown)}, which its schema does not name")
        for name, item in value.items():
            check(item, schema["properties"][name], f"{at}.{name}")


def load(text):
    """The object in an output of the program, checked."""
    value = json.loads(text)
    check(value, read(value["schema"].replace("/", "-") + ".json"))
    return value
