#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the descriptions of the LV2 plug-ins and the header with the same tables for the C code.

descriptions.py VERSION MODULE HEADER MANIFEST DATA
  VERSION   of the project; MODULE: file name of the shared object
  HEADER    ports and variants for C; MANIFEST, DATA: manifest.ttl and partita.ttl
"""
import collections
import sys

# inputs, outputs: audio ports. order: of the responses in a file that has one for every path.
Variant = collections.namedtuple("Variant", "name title inputs outputs order")
VARIANTS = (
    Variant("mono", "Partita Mono", 1, 1, "BY_OUTPUT"),
    Variant("mono-stereo", "Partita Mono to Stereo", 1, 2, "BY_OUTPUT"),
    Variant("stereo", "Partita Stereo", 2, 2, "PARALLEL"),
    Variant("true-stereo", "Partita True Stereo", 2, 2, "BY_INPUT"),
    *(Variant(f"matrix-{n}x{m}", f"Partita Matrix {n} to {m}", n, m, "BY_OUTPUT")
      for n, m in ((4, 4), (8, 8), (16, 16), (4, 2), (9, 2), (16, 2))),
)
assert all(v.inputs == 1 or v.outputs <= v.inputs for v in VARIANTS)  # for mix() in audio.c

MIN_DB, MAX_DB = -90, 20
# symbol, name, default, comment
LEVELS = (
    ("dry", "Dry", MIN_DB, "Level of the unfiltered input in the output. At the lowest value it is absent."),
    ("wet", "Wet", 0, "Level of the filtered input in the output. At the lowest value it is absent."),
    ("gain", "Gain", 0, "Level of the whole output."),
)

HEAD = """\
@prefix atom: <http://lv2plug.in/ns/ext/atom#> .
@prefix bufsz: <http://lv2plug.in/ns/ext/buf-size#> .
@prefix doap: <http://usefulinc.com/ns/doap#> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix log: <http://lv2plug.in/ns/ext/log#> .
@prefix lv2: <http://lv2plug.in/ns/lv2core#> .
@prefix opts: <http://lv2plug.in/ns/ext/options#> .
@prefix patch: <http://lv2plug.in/ns/ext/patch#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix rsz: <http://lv2plug.in/ns/ext/resize-port#> .
@prefix state: <http://lv2plug.in/ns/ext/state#> .
@prefix units: <http://lv2plug.in/ns/extensions/units#> .
@prefix urid: <http://lv2plug.in/ns/ext/urid#> .
@prefix work: <http://lv2plug.in/ns/ext/worker#> .
"""
PROJECT, RESPONSE = "urn:partita:lv2", "urn:partita:lv2:impulse-response"


def uri(variant):
    return f"{PROJECT}:{variant.name}"


def header():
    ports = ["CONTROL", "NOTIFY"] + [symbol.upper() for symbol, *_ in LEVELS] + ["LATENCY"]
    yield "// Written by descriptions.py."
    yield f"enum port {{ {', '.join('PORT_' + port for port in ports)}, N_FIXED_PORTS }};"
    yield f"enum {{ MIN_DB = {MIN_DB}, MAX_DB = {MAX_DB} }};"
    yield f'#define RESPONSE_URI "{RESPONSE}"'
    most = max(max(v.inputs, v.outputs) for v in VARIANTS)
    yield f"enum {{ N_VARIANTS = {len(VARIANTS)}, MAX_CHANNELS = {most} }};"
    yield "#define EACH_VARIANT(X) \\"
    for v in VARIANTS:
        yield f'    X("{uri(v)}", "{v.title}", {v.inputs}, {v.outputs}, ORDER_{v.order}) \\'
    yield ""


def manifest(module):
    yield "@prefix lv2: <http://lv2plug.in/ns/lv2core#> ."
    yield "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    for v in VARIANTS:
        yield f"\n<{uri(v)}> a lv2:Plugin ;\n    lv2:binary <{module}> ;\n    rdfs:seeAlso <partita.ttl> ."


def event_port(index, direction, symbol, name, more):
    return f"""\
        a lv2:{direction}Port , atom:AtomPort ;
        lv2:index {index} ; lv2:symbol "{symbol}" ; lv2:name "{name}" ;
        atom:bufferType atom:Sequence ; atom:supports patch:Message ;
        rsz:minimumSize 8192 ; lv2:portProperty lv2:connectionOptional{more}
"""


def ports(variant):
    yield event_port(0, "Input", "control", "Control", " ;\n        lv2:designation lv2:control")
    yield event_port(1, "Output", "notify", "Notify", "")
    for symbol, name, default, comment in LEVELS:
        index = 2 + [level[0] for level in LEVELS].index(symbol)
        yield f"""\
        a lv2:InputPort , lv2:ControlPort ;
        lv2:index {index} ; lv2:symbol "{symbol}" ; lv2:name "{name}" ;
        rdfs:comment "{comment}" ;
        lv2:default {default}.0 ; lv2:minimum {MIN_DB}.0 ; lv2:maximum {MAX_DB}.0 ; units:unit units:db
"""
    index = 2 + len(LEVELS)
    yield f"""\
        a lv2:OutputPort , lv2:ControlPort ;
        lv2:index {index} ; lv2:symbol "latency" ; lv2:name "Latency" ;
        lv2:designation lv2:latency ; lv2:portProperty lv2:reportsLatency , lv2:integer ;
        lv2:minimum 0 ; lv2:maximum 1048576 ; units:unit units:frame
"""
    for direction, count in (("Input", variant.inputs), ("Output", variant.outputs)):
        for channel in range(1, count + 1):
            index += 1
            yield f"""\
        a lv2:{direction}Port , lv2:AudioPort ;
        lv2:index {index} ; lv2:symbol "{direction.lower()}_{channel}" ; lv2:name "{direction} {channel}"
"""


def data(version):
    _, minor, micro = version.split(".")
    yield HEAD
    yield f"""\
<{PROJECT}> a doap:Project ;
    doap:name "Partita" ;
    doap:license <http://opensource.org/licenses/MIT> ;
    doap:maintainer [ a foaf:Person ; foaf:name "Partita Authors" ] .

<{RESPONSE}> a lv2:Parameter ;
    rdfs:label "Impulse response" ;
    rdfs:comment "The sound file with the impulse responses." ;
    rdfs:range atom:Path .
"""
    for v in VARIANTS:
        yield f"""\
<{uri(v)}> a lv2:Plugin , lv2:ReverbPlugin ;
    doap:name "{v.title}" ;
    doap:license <http://opensource.org/licenses/MIT> ;
    lv2:project <{PROJECT}> ;
    lv2:minorVersion {minor} ; lv2:microVersion {micro} ;
    lv2:requiredFeature urid:map , work:schedule ;
    lv2:optionalFeature lv2:hardRTCapable , log:log , opts:options , bufsz:boundedBlockLength ,
        state:mapPath , state:freePath , state:threadSafeRestore ;
    lv2:extensionData work:interface , state:interface ;
    opts:supportedOption bufsz:nominalBlockLength , bufsz:maxBlockLength ;
    patch:writable <{RESPONSE}> ;
    patch:readable <{RESPONSE}> ;
    lv2:port ["""
        yield "    ] , [\n".join(ports(v)) + "    ] ."
        yield ""


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    version, module, to_header, to_manifest, to_data = sys.argv[1:]
    write(to_header, header())
    write(to_manifest, manifest(module))
    write(to_data, data(version))


main()
