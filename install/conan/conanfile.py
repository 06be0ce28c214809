"""Conan 2 package of the runtime, its headers and the tools, built by Bazel in this checkout:

    conan export-pkg install/conan

A project uses it with `find_package(Permafrost)`, which finds the CMake package of docs/guide/install.md.
"""

import os
import pathlib
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration

PROCESSORS = ('x86_64', 'armv8')


class Permafrost(ConanFile):
    name = 'permafrost'
    description = 'Optimises, converts and runs frozen models'
    license = 'Apache-2.0'
    topics = ('tensorflow', 'inference', 'quantization')
    settings = 'os', 'arch'
    package_type = 'shared-library'

    def _checkout(self):
        return pathlib.Path(self.recipe_folder).resolve().parents[1]

    def set_version(self):
        text = (self._checkout() / 'tools/command_line/cli.h').read_text(encoding='utf-8')
        self.version = re.search(r'kVersion = "([^"]+)"', text).group(1)

    def validate(self):
        if self.settings.os != 'Linux' or self.settings.arch not in PROCESSORS:
            raise ConanInvalidConfiguration(f'found {self.settings.os} on {self.settings.arch}, expected Linux on '
                                            f'{" or ".join(PROCESSORS)}')

    def package(self):
        flags = self.conf.get('user.permafrost:bazel_flags', default='--config=release')
        self.run(f'bazel run {flags} //:install -- --prefix="{self.package_folder}"', cwd=str(self._checkout()))

    def package_info(self):
        # The installed CMake package names every library, with what it is linked to.
        self.cpp_info.set_property('cmake_find_mode', 'none')
        self.cpp_info.builddirs = [os.path.join('lib', 'cmake', 'Permafrost')]
        self.cpp_info.libs = ['permafrost_runtime']
        self.buildenv_info.prepend_path('PATH', os.path.join(self.package_folder, 'bin'))
        self.runenv_info.prepend_path('PATH', os.path.join(self.package_folder, 'bin'))
