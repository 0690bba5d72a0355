#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pages made from the public headers: complete, well formed, refused without a comment.

usage: test_api_pages.py SOURCE_FOLDER
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

source = sys.argv[1]
count = failed = 0


def report(good, name, text=''):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    for line in text.splitlines() if not good else []:
        print('#', line)


def generate(include, out):
    script = os.path.join(source, 'tools', 'api_pages.py')
    return subprocess.run([sys.executable, script, '9.8.7', include, os.path.join(out, 'man3'),
                           os.path.join(out, 'html')], capture_output=True, text=True)


def shell(command, folder):
    return subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True).stdout


def refused(name, old, new, expected):
    """The generator names the place in a copy of the headers where `old` became `new`."""
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, 'partita')
        shutil.copytree(include, copy)
        path = os.path.join(copy, 'problem.h')
        text = open(path).read()
        assert old in text, old
        open(path, 'w').write(text.replace(old, new))
        result = generate(copy, folder)
        report(result.returncode != 0 and expected in result.stderr and
               not os.path.exists(os.path.join(folder, 'man3')), name, result.stderr)


include = os.path.join(source, 'include', 'partita')
with tempfile.TemporaryDirectory() as folder:
    result = generate(include, folder)
    report(result.returncode == 0, 'generates', result.stderr)
    headers = ' '.join(open(os.path.join(include, name)).read() for name in os.listdir(include))
    functions = [name for name in re.findall(
        r'(?:PARTITA_API|static inline) [^(;]*?(partita_\w+)\(', headers)
        if not name.endswith('_sized')]
    pages = os.listdir(os.path.join(folder, 'man3'))
    missing = sorted(name for name in functions if name + '.3' not in pages)
    report(functions and not missing, 'a manual page for each function', '\n'.join(missing))

    html = {name: open(os.path.join(folder, 'html', name)).read()
            for name in os.listdir(os.path.join(folder, 'html'))}
    headings = ' '.join(re.findall('<h2>.*</h2>', ' '.join(html.values())))
    missing = sorted(name for name in functions if f'<code>{name}</code>' not in headings)
    report(not missing, 'a section of HTML for each function', '\n'.join(missing))
    broken = [f'{page}: {link}' for page, text in html.items()
              for link in re.findall('href="(.*?)"', text) if link.split('#')[0] not in html
              or '#' in link and f'id="{link.split("#")[1]}"' not in html[link.split('#')[0]]]
    report(not broken, 'links of HTML lead somewhere', '\n'.join(broken))

    lint = shell('mandoc -Tlint man3/*.3', folder)
    report(not lint, 'mandoc -Tlint', lint)
    text = shell('mandoc -Tascii man3/partita_version.3', folder)
    text = re.sub('.\b', '', text)  # bold and underlined letters are overstruck
    report('const char *partita_version(void);' in text and 'Threads   any.' in text,
           'rendered text', text)

version = re.search(r'((?://.*\n)+)PARTITA_API const char \*partita_version', headers)[1]
refused('a function without a comment', version, '', 'partita_version')
refused('a comment that says only Threads', version, '// Threads: any.\n', 'partita_version')
status = re.search(r'((?://.*\n)+)enum partita_status', headers)[1]
refused('an enum without a comment', status, '', 'partita_status')
print(f'1..{count}')
sys.exit(failed > 0)
