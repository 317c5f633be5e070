#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel: librondo by CMake, the package around it. Only the standard library is needed,
and the compiler and packages that tools/setup names; so `pip install .` works without a network.

pip calls the functions of PEP 517; by hand:  backend.py OUTPUT_FOLDER. CMAKE_ARGS adds arguments of CMake.

One wheel serves every Python from 3.11 on, as nothing in it is compiled against one. It has no part
of CUDA, which is found when it is used. protobuf-c is linked into the library where its static form
is installed, as it is in Debian's. RE2 lies beside the library.
"""
import base64
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build-wheel")


def read_version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as stream:
        return re.search(r"project\(rondo VERSION ([0-9.]+)", stream.read()).group(1)


def make_metadata():
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as stream:
        project = tomllib.load(stream)["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {read_version()}",
             f"Summary: {project['description']}", f"License: {project['license']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {dependency}" for dependency in project["dependencies"]]
    lines += ["Description-Content-Type: text/markdown", ""]
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as stream:
        return "\n".join(lines) + "\n" + stream.read()


def make_tag():
    """Any Python 3, this machine."""
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


# ---- the library --------------------------------------------------------------------------------


def build_library():
    """The folder with librondo.so.0.1 and librondo_torch.so, stripped."""
    cache = os.path.join(BUILD, "CMakeCache.txt")
    command = ["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release",
               "-DRONDO_BUILD_TESTS=OFF", "-DRONDO_BUILD_EXAMPLES=OFF", "-DRONDO_INSTALL=OFF",
               "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--exclude-libs,ALL",
               "-DCMAKE_BUILD_RPATH=$ORIGIN",
               "-DCMAKE_PROJECT_INCLUDE=" + os.path.join(ROOT, "python", "static_libraries.cmake")]
    if not os.path.exists(cache) and shutil.which("ninja"):
        command += ["-G", "Ninja"]
    if shutil.which("ccache"):
        command += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"]
    command += shlex.split(os.environ.get("CMAKE_ARGS", ""))
    subprocess.run(command, check=True, stdout=sys.stderr)
    jobs = os.environ.get("JOBS") or str(os.cpu_count() or 2)
    subprocess.run(["cmake", "--build", BUILD, "--target", "rondo_shared", "rondo_torch", "-j", jobs],
                   check=True, stdout=sys.stderr)
    libraries = {}
    for name in ("librondo.so.0.1", "librondo_torch.so"):
        stripped = os.path.join(BUILD, "stripped-" + name)
        shutil.copyfile(os.path.realpath(os.path.join(BUILD, name)), stripped)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", stripped], check=True)
        libraries["rondo/" + name] = stripped
    needed = subprocess.run(["ldd", os.path.join(BUILD, "librondo.so.0.1")], check=True,
                            capture_output=True, text=True).stdout
    for name, path in re.findall(r"(libre2\S*) => (/\S+)", needed):
        libraries["rondo/" + name] = os.path.realpath(path)
    return libraries


def list_sources():
    folder = os.path.join(ROOT, "python", "rondo")
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".pyi")) or name == "py.typed":
                path = os.path.join(base, name)
                yield "rondo/" + os.path.relpath(path, folder), path


# ---- wheels -------------------------------------------------------------------------------------


def write_wheel(folder, files, texts, tag):
    version = read_version()
    info = f"rondo-{version}.dist-info"
    with open(os.path.join(ROOT, "LICENSE"), encoding="utf-8") as stream:
        texts = {**texts, f"{info}/licenses/LICENSE": stream.read()}
    texts[f"{info}/METADATA"] = make_metadata()
    texts[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: rondo\nRoot-Is-Purelib: false\n"
                              f"Tag: {tag}\n")
    contents = {name: text.encode() for name, text in texts.items()}
    for name, path in files.items():
        with open(path, "rb") as stream:
            contents[name] = stream.read()
    record = []
    file = f"rondo-{version}-{tag}.whl"
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(os.path.join(folder, file), "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in sorted(contents.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            wheel.writestr(entry, content)
        record.append(f"{info}/RECORD,,")
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2026, 1, 1, 0, 0, 0)), "\n".join(record) + "\n")
    return file


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {**dict(list_sources()), **build_library()}, {}, make_tag())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package stays in the clone, and uses the library of its build folder."""
    path = os.path.join(ROOT, "python") + "\n"
    return write_wheel(wheel_directory, {}, {"rondo-clone.pth": path}, make_tag())


def build_sdist(sdist_directory, config_settings=None):
    """What git has."""
    version = read_version()
    file = f"rondo-{version}.tar.gz"
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True)
    with tarfile.open(os.path.join(sdist_directory, file), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in listed.stdout.decode().split("\0"):
            if name and os.path.exists(os.path.join(ROOT, name)):
                archive.add(os.path.join(ROOT, name), f"rondo-{version}/{name}", recursive=False)
        info_path = os.path.join(sdist_directory, "PKG-INFO")
        with open(info_path, "w", encoding="utf-8") as stream:
            stream.write(make_metadata())
        archive.add(info_path, f"rondo-{version}/PKG-INFO")
        os.remove(info_path)
    return file


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
