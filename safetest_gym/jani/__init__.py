from safetest_gym.jani.model import read_model
