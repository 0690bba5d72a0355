#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes manual pages (section 3) and an HTML reference from the comments of the public headers.

A comment belongs to the declarations that follow it without an empty line. Its paragraphs are text,
or code if indented by three columns, or sections with one of the LABELS. A function, struct, enum
or macro PARTITA_... without a sentence about it is an error; the script then writes nothing.

usage: api_pages.py VERSION FOLDER_OF_HEADERS MAN_FOLDER HTML_FOLDER
Pages of an earlier run are removed from both folders. A folder with other files is refused.
"""
import html
import os
import pathlib
import re
import sys
import textwrap
import time

LABELS = 'Shapes|Ranges|Errors|Memory|Devices|Time|Threads|Source'
LABEL = re.compile(rf' ((?:{LABELS})(?:, (?:{LABELS}))*):\s+(.*)')
LABEL_INSIDE = re.compile(rf'(?<=\.) ((?:{LABELS})): ')
NAME = re.compile(r'(?:\b(?:partita_\w+|PARTITA_[A-Z0-9_]+)\b|\b[a-z]+\.h\b)')
HEADERS = 'partita problem plan filter stream adaptive bank channelizer pairs templates design correction equalizer sequence decode advanced'.split()


def parse_comment(lines):
    """Lines after their '//' as [label or None, 'text' or 'code', string]."""
    blocks, last = [], None  # the block that the next line may continue
    for line in lines:
        label = LABEL.match(line)
        if not line.strip():
            last = None
        elif label:
            blocks.append(last := [label[1], 'text', label[2]])
        elif last and last[0] and line.startswith(' ' * 9):
            last[2] += ' ' + line.strip()
        else:
            kind, text = ('code', line[3:]) if line.startswith('   ') else ('text', line.strip())
            if last and last[:2] == [None, kind]:
                last[2] += ('\n' if kind == 'code' else ' ') + text
            else:
                blocks.append(last := [None, kind, text])
    result = []
    for label, kind, text in blocks:
        pieces = LABEL_INSIDE.split(text) if kind == 'text' else [text]
        result.append([label, kind, pieces[0]])
        result += [[a, 'text', b] for a, b in zip(pieces[1::2], pieces[2::2])]
    return result


def parse_members(body):
    """Members of a struct or enum with their comments: before, beside, or below and further in."""
    members, before, declaration = [], [], ''
    for line in body:
        code, _, comment = (part.strip() for part in line.partition('//'))
        if code:
            declaration = (declaration + ' ' + code).strip()
            if declaration[-1] in ';,' and declaration.count('{') == declaration.count('}'):
                members.append([declaration.rstrip(';,'), ' '.join(before + [comment] * bool(comment))])
                before, declaration = [], ''
            elif comment:
                before.append(comment)
        elif comment and members and line.index('//') > 4 and not before:
            members[-1][1] += ' ' + comment
        elif comment:
            before.append(comment)
    if declaration:
        members.append([declaration, ' '.join(before)])
    return members


class Item:
    """Declarations that share a comment."""

    def __init__(self, header, line, comment):
        self.header, self.line, self.blocks = header, line, parse_comment(comment)
        self.names = []       # of functions, types and macros
        self.constants = []   # of enums
        self.prototypes = []
        self.types = []       # (first line, members)

    def code(self):
        """Lines of code that declare what a program uses."""
        prototypes = [line for prototype in self.prototypes for line in wrap_prototype(prototype).split('\n')]
        return prototypes + [first + (' { ... };' if members else ';') for first, members in self.types]

    def add(self, text):
        """One declaration; those that are not public are left out."""
        text = text.replace('__extension__ ', '')
        enum = re.match(r'(struct|enum|union) (partita_\w+)\s*(;|{)', text)
        macro = re.match(r'#define (PARTITA_[A-Z0-9_]+|partita_\w+)(\(.*?\))?', text)
        function = re.match(r'(?:PARTITA_API|static inline)[^({=]*?\b(partita_\w+)\(', text)
        if enum:
            if enum[3] == ';' and not self.blocks:
                return
            self.names.append(enum[2])
            members = parse_members(text.split('\n')[1:-1])
            self.types.append((f'{enum[1]} {enum[2]}', members))
            if enum[1] == 'enum':
                self.constants += [member.split()[0] for member, _ in members]
        elif macro and (self.blocks or not macro[1].isupper()):
            self.names.append(macro[1])
            self.prototypes.append(macro[0] if macro[2] else ' '.join(text.split()))
        elif function and not function[1].endswith('_sized'):  # the inline function says it all
            self.names.append(function[1])
            text = re.sub(r'\s*\bPARTITA_(API|NONBLOCKING)\b\s*|{.*', ' ', text, flags=re.S)
            self.prototypes.append(' '.join(text.rstrip('; \n').split()) + ';')

    def summary(self):
        """The first sentence or its first part."""
        text = next((text for label, kind, text in self.blocks if not label and kind == 'text'), '')
        text = re.split(r'(?<=[^.])[.;:](?: |$)', text, maxsplit=1)[0].replace('`', '')
        return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == ' ' else text


def names_of(items):
    return list(dict.fromkeys(name for item in items for name in item.names))


class Header:
    def __init__(self, path):
        self.name = path.stem
        self.items = []
        lines = path.read_text(encoding='utf-8').split('\n')
        start = next(i for i, line in enumerate(lines) if line.startswith('#ifndef'))
        self.blocks = parse_comment(line[2:] for line in lines[1:start])
        comment, item, i = [], None, start + 2
        while i < len(lines):
            line = lines[i]
            i += 1
            if line.startswith('//'):
                if item:
                    comment, item = [], None
                comment.append(line[2:])
            elif not line.strip():
                comment, item = [], None
            elif re.match(r'#define (?!.*_H$)|(?!extern "C")[a-z]|PARTITA_API', line):
                text, first = line, i
                while not self.complete(text):
                    text += '\n' + lines[i]
                    i += 1
                if not item:
                    item = Item(self.name, first, comment)
                    self.items.append(item)
                item.add(text)
        self.items = [item for item in self.items if item.names]

    @staticmethod
    def complete(text):
        if text.startswith('#'):
            return not text.endswith('\\')
        code = re.sub(r'//.*', '', text).rstrip()
        return code.count('{') == code.count('}') and code[-1:] in (';', '}')


class Pages:
    """Items by page: a struct and a function of one name share a page."""

    def __init__(self, headers):
        self.headers = headers
        self.pages = {}   # first name -> items
        self.owner = {}   # any name -> page
        for header in headers:
            for item in header.items:
                page = self.owner.get(item.names[0], item.names[0])
                self.pages.setdefault(page, []).append(item)
                for name in item.names + item.constants:
                    self.owner.setdefault(name, page)
            self.owner[header.name + '.h'] = header.name + '.h'

    def undocumented(self):
        return [f'{item.header}.h:{item.line}: {item.names[0]}: no sentence says what it is or does'
                for items in self.pages.values() for item in items if not item.summary()]

    def related(self, names, items):
        """What the items' comments and prototypes mention, and functions that take their types."""
        found = set()
        for item in items:
            for text in [block[2] for block in item.blocks] + item.prototypes:
                found.update(NAME.findall(text))
        for page, others in self.pages.items():
            if any(set(NAME.findall(prototype)) & set(names) for item in others for prototype in item.prototypes):
                found.add(page)
        found = {self.owner[name] for name in found if name in self.owner}
        return sorted(name for name in found - set(names) if name in self.pages)

    def of_header(self, header):
        return {page: items for page, items in self.pages.items() if items[0].header == header.name}


def wrap_prototype(text):
    if len(text) <= 76 or '(' not in text:
        return text
    head, arguments = text.split('(', 1)
    # An argument stays in one line.
    arguments = ', '.join(part.replace(' ', '\0') for part in arguments.split(', '))
    lines = textwrap.wrap(arguments, 72, break_long_words=False)
    return head + '(\n' + '\n'.join('    ' + line.replace('\0', ' ') for line in lines)


class Man:
    def __init__(self, pages, version, date, folder):
        self.pages, self.version, self.date, self.folder = pages, version, date, folder
        self.files = {name for items in pages.pages.values() for name in names_of(items)}

    @staticmethod
    def wrap(text):
        return '\n'.join(textwrap.wrap(text, 78, break_long_words=False, break_on_hyphens=False))

    @staticmethod
    def escape(text):
        text = re.sub(r'(?<![a-zA-Z])-|-(?![a-zA-Z])', r'\\-', text.replace('\\', r'\e'))
        text = text.replace("'", r'\(aq') if text.startswith("'") else text
        return r'\&' + text if text.startswith('.') else text

    def prose(self, text, page):
        def name(match):
            word = match[0]
            called = text[match.end():].startswith('(')
            section = '(3)' if word in self.files and word != page and not called else ''
            return rf'\fB{word}\fP{section}'
        text = re.sub(r'`([^`]*)`', r'\\fI\1\\fP', self.escape(text))
        return self.wrap(NAME.sub(name, text))

    def body(self, blocks, page):
        out = []
        for label, kind, text in blocks:
            if label:
                out.append(f'.TP 10\n.B {label}\n{self.prose(text, page)}')
            elif kind == 'code':
                lines = '\n'.join(self.escape(line) for line in text.split('\n'))
                out.append(f'.PP\n.in +4n\n.nf\n{lines}\n.fi\n.in')
            else:
                out.append(f'.PP\n{self.prose(text, page)}')
        return '\n'.join(out)

    def write(self, name, title, sections):
        text = f'.TH {name.upper()} 3 {self.date} "Partita {self.version}" "Partita"\n.nh\n.ad l\n'
        text += f'.SH NAME\n{self.wrap(title)}\n'
        for heading, body in sections:
            text += f'.SH {heading}\n' + body.removeprefix('.PP\n') + '\n'
        (self.folder / f'{name}.3').write_text(text, encoding='utf-8')

    def page(self, page, items):
        names = names_of(items)
        synopsis = '.nf\n.B #include <partita/partita.h>\n.sp\n'
        description = []
        for item in items:
            synopsis += ''.join(f'.B "{self.escape(line)}"\n' for line in item.code())
            description.append(self.body(item.blocks, page))
            for first, members in item.types:
                if members:
                    description.append(f'.PP\nMembers of \\fB{first}\\fP:')
                for member, comment in members:
                    text = self.prose(comment, page) or r'\&'
                    description.append(f'.TP 4\n.B "{self.escape(member)}"\n{text}')
        # Every call returns a status.
        seen = [name for name in self.pages.related(names, items) if name != 'partita_status']
        seen = ['partita'] if page == 'partita_status' else seen + ['partita']
        title = ', '.join(names) + r' \- ' + self.escape(items[0].summary())
        for name in names:
            self.write(name, title, [
                ('SYNOPSIS', synopsis + '.fi'), ('DESCRIPTION', '\n'.join(description)),
                ('SEE ALSO', ' ,\n'.join(f'.BR {other} (3)' for other in seen))])

    def overview(self):
        sections = [('SYNOPSIS', '.nf\n.B #include <partita/partita.h>\n.PP\n'
                     '.B cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs partita)\n.fi')]
        for header in self.pages.headers:
            heading = 'DESCRIPTION' if header.name == 'partita' else f'"{header.name}.h"'
            body = self.body(header.blocks, 'partita')
            for page, items in self.pages.of_header(header).items():
                body += f'\n.TP 4\n.BR "{", ".join(names_of(items))}" (3)\n{self.prose(items[0].summary(), "partita")}'
            sections.append((heading, body))
        title = r'partita \- linear filters for streams, signals and images'
        self.write('partita', title, sections)


STYLE = '''body { max-width: 50em; margin: 2em auto; padding: 0 1em; line-height: 1.5;
  font-family: sans-serif }
pre, code { font-family: monospace; background: #f4f4f4 } pre { padding: .6em; overflow-x: auto }
section { border-top: 1px solid #bbb; margin-top: 2em } dd { margin-bottom: .4em }
a { text-decoration: none } a:hover { text-decoration: underline }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd }
  pre, code { background: #282828 } a { color: #8bf } }'''


class Html:
    def __init__(self, pages, version, folder):
        self.pages, self.version, self.folder = pages, version, folder

    def link(self, match):
        word = match[0]
        page = self.pages.owner.get(word)
        if not page:
            return word
        if page.endswith('.h'):
            return f'<a href="{page[:-2]}.html">{word}</a>'
        header = self.pages.pages[page][0].header
        return f'<a href="{header}.html#{page}"><code>{word}</code></a>'

    def prose(self, text):
        text = re.sub(r'`([^`]*)`', r'<code>\1</code>', html.escape(text, quote=False))
        return NAME.sub(self.link, text)

    def code(self, text):
        return re.sub('</?code>', '', NAME.sub(self.link, html.escape(text, quote=False)))

    def body(self, blocks):
        out, listing = [], False
        for label, kind, text in blocks:
            if bool(label) != listing:
                out.append('<dl>' if label else '</dl>')
                listing = bool(label)
            if label:
                out.append(f'<dt>{label}</dt>\n<dd>{self.prose(text)}</dd>')
            else:
                out.append(f'<pre>{self.code(text)}</pre>' if kind == 'code' else f'<p>{self.prose(text)}</p>')
        return '\n'.join(out + ['</dl>'] * listing)

    def section(self, page, items):
        names = ', '.join(f'<code>{name}</code>' for name in names_of(items))
        out = [f'<section id="{page}">', f'<h2>{names}</h2>']
        for item in items:
            out.append('<pre>' + self.code('\n'.join(item.code())) + '</pre>')
            out.append(self.body(item.blocks))
            for _, members in item.types:
                if members:
                    out.append('<dl>' + '\n'.join(
                        f'<dt><code>{self.code(member)}</code></dt><dd>{self.prose(comment)}</dd>'
                        for member, comment in members) + '</dl>')
        return '\n'.join(out + ['</section>'])

    def contents(self, header):
        return '<ul>' + '\n'.join(
            f'<li><a href="{header.name}.html#{page}"><code>{page}</code></a>: {self.prose(items[0].summary())}</li>'
            for page, items in self.pages.of_header(header).items()) + '</ul>'

    def write(self, name, title, body):
        (self.folder / f'{name}.html').write_text(
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width">\n'
            f'<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n',
            encoding='utf-8')

    def site(self):
        index = [f'<h1>Partita {self.version}</h1>']
        for header in self.pages.headers:
            intro = self.body(header.blocks)
            if header.name == 'partita':
                index.append(intro)
            index.append(f'<h2><a href="{header.name}.html">{header.name}.h</a></h2>')
            index.append(self.contents(header))
            self.write(header.name, f'{header.name}.h', '\n'.join(
                ['<p><a href="index.html">All headers</a></p>', f'<h1>{header.name}.h</h1>', intro,
                 self.contents(header)] +
                [self.section(*pair) for pair in self.pages.of_header(header).items()]))
        self.write('index', f'Partita {self.version}', '\n'.join(index))


def old_pages(folder, suffix):
    """The pages of an earlier run; ends the script if the folder has anything else."""
    paths = list(folder.glob('*'))
    for path in paths:
        if path.is_symlink() or not path.is_file() or path.suffix != suffix or \
                'partita' not in path.read_text(encoding='utf-8', errors='replace').lower():
            sys.exit(f'{path} is not a page of this script: name a new folder, or remove it yourself')
    return paths


def read_headers(folder):
    """The headers in the order in which a reader needs them."""
    headers = [Header(path) for path in sorted(folder.glob('*.h'))]
    return sorted(headers, key=lambda h: HEADERS.index(h.name) if h.name in HEADERS else len(HEADERS))


def main():
    version, (include, man, site) = sys.argv[1], map(pathlib.Path, sys.argv[2:])
    pages = Pages(read_headers(include))
    errors = pages.undocumented()
    if errors:
        sys.exit('\n'.join(errors))
    for path in old_pages(man, '.3') + old_pages(site, '.html'):
        path.unlink()
    for folder in (man, site):
        folder.mkdir(parents=True, exist_ok=True)
    seconds = os.environ.get('SOURCE_DATE_EPOCH') or max(path.stat().st_mtime for path in include.glob('*.h'))
    writer = Man(pages, version, time.strftime('%Y-%m-%d', time.gmtime(int(float(seconds)))), man)
    for page, items in pages.pages.items():
        writer.page(page, items)
    writer.overview()
    Html(pages, version, site).site()


if __name__ == '__main__':
    main()
