"""Experiments: the papers' studies on the bundled tasks, resumable, with tables and figures.

Stands above the core and both faces, like the command line.
"""

from safetest_gym.bench.experiment import EXPERIMENTS, Experiment, Setting, find_experiment
from safetest_gym.bench.running import run_experiment

__all__ = ["EXPERIMENTS", "Experiment", "Setting", "find_experiment", "run_experiment"]
