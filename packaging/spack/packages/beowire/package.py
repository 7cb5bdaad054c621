# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# For `spack repo add packaging/spack` and `spack develop`, see docs/install.md. The command beowire
# is installed as well; the Python packages that it loads (tools/pyproject.toml) are not.
from spack.package import MesonPackage, depends_on, join_path, license, version


class Beowire(MesonPackage):
    """Reliable messages over Ethernet frames for the processes of a cluster: a C library, and a
    provider for libfabric that MPI uses."""

    # Sources are a checkout: spack develop --path CHECKOUT beowire@=0.1.0
    manual_download = True
    license("GPL-2.0-only OR BSD-2-Clause")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libfabric@1.17:")
    depends_on("libsodium")
    depends_on("python@3.11:", type="run")

    def meson_args(self):
        return ["-Ddevelopment=false", "-Dwerror=false", "-Dlibdir=lib"]

    def setup_run_environment(self, env):
        env.set("FI_PROVIDER_PATH", join_path(self.prefix, "lib", "libfabric"))
        env.set("FI_PROVIDER", "beowire")
        env.set("MPIR_CVAR_CH4_NETMOD", "ofi")
        env.set("OMPI_MCA_mtl", "ofi")
        env.set("OMPI_MCA_mtl_ofi_provider_include", "beowire")
        env.set("OMPI_MCA_osc", "^ucx")
