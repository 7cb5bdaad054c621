# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A check for ReFrame: pi on two nodes over Beowire, with the bits of the result compared.

reframe -c packaging/reframe -r --setvar beowire_dir=/path/to/checkout

ReFrame gives a check's class variable(), run_before() and sanity_function() without an import.
"""

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class BeowirePi(rfm.RunOnlyRegressionTest):
    """Fails unless four ranks computed the one right result, and went over Beowire."""

    beowire_dir = variable(str)
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    num_tasks = 4
    num_tasks_per_node = 2
    executable_opts = ["--precision", "1e-6", "--json"]

    @run_before("run")
    def choose(self):
        self.executable = f"{self.beowire_dir}/build/examples/pi"
        self.env_vars = {"BEOWIRE_STATS": "$PWD/counters"}
        self.prerun_cmds = [
            "mkdir -p counters",
            f'eval "$({self.beowire_dir}/beowire env)"',
        ]

    @sanity_function
    def validate(self):
        return sn.all(
            [
                sn.assert_found(r'"ranks": 4, .*"checksum": "400921fbd927b6a7"', self.stdout),
                sn.assert_eq(sn.count(sn.glob("counters/*.json")), self.num_tasks),
            ]
        )
