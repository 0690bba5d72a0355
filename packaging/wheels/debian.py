# SPDX-License-Identifier: MIT
"""Debian packages of any release and machine, unpacked into folders of their own; nothing is installed."""
import os
import pathlib
import subprocess

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Missing(Exception):
    """Something that a wheel needs is not to be had; the text says what."""


def run(*words, **options):
    """Runs a command; its output is shown only if it fails, in the exception Missing."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)
    if done.returncode:
        lines = done.stdout.strip().splitlines()[-20:]
        raise Missing(f"`{' '.join(str(word) for word in words[:4])} ...` failed:\n    " + "\n    ".join(lines))
    return done.stdout


def mirror():
    """Where this machine gets the packages of its own release from."""
    lines = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN)", "Created-By: Packages").splitlines()
    found = [line.split()[0] for line in lines if line.endswith(" Debian") and "security" not in line]
    if not found:
        raise Missing("apt-get knows no mirror of Debian")
    return found[0]


def apt_settings(folder, release, machine):
    """The environment in which apt-get sees one release for one machine, with lists below a folder."""
    settings = folder / f"apt-{release}-{machine}"
    for part in ("lists/partial", "cache/archives/partial"):
        (settings / part).mkdir(parents=True, exist_ok=True)
    (settings / "status").touch()
    (settings / "sources.list").write_text("".join(f"{kind} [signed-by={KEYS}] {mirror()} {release} main\n"
                                                   for kind in ("deb", "deb-src")))
    (settings / "apt.conf").write_text(
        f'APT::Architecture "{machine}"; APT::Architectures {{ "{machine}"; }}; APT::Sandbox::User "root";\n'
        f'Dir::State "{settings}"; Dir::State::status "{settings}/status"; Dir::Cache "{settings}/cache";\n'
        f'Dir::Etc::sourcelist "{settings}/sources.list"; Dir::Etc::sourceparts "-";\n')
    environment = dict(os.environ, APT_CONFIG=str(settings / "apt.conf"))
    run("apt-get", "-q", "update", env=environment)
    return environment


def unpacked(root, release, machine, packages):
    """Makes a root folder of packages of a release (bullseye) for a machine (amd64, arm64), and returns it."""
    folder = root.parent
    if not root.is_dir():
        environment = apt_settings(folder, release, machine)
        downloads = folder / f"{root.name}.debs"
        downloads.mkdir(exist_ok=True)
        run("apt-get", "-q", "download", *packages, cwd=downloads, env=environment)
        unfinished = folder / f"{root.name}.new"
        for package in sorted(downloads.glob("*.deb")):
            run("dpkg-deb", "-x", package, unfinished)
        relative_links(unfinished)
        unfinished.rename(root)
    return root


def relative_links(root):
    """Absolute links within a root folder would lead to this machine's own files."""
    for path in root.rglob("*"):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            target = pathlib.Path(os.path.relpath(root / os.readlink(path)[1:], path.parent))
            path.unlink()
            path.symlink_to(target)


def source(folder, release, package):
    """The archive of the source that a package of Debian was made from, without Debian's changes."""
    environment = apt_settings(folder, release, "amd64")
    run("apt-get", "-q", "source", "--download-only", package, cwd=folder, env=environment)
    return sorted(folder.glob(f"{package}_*.orig.tar.*"))[-1]
