pytest_plugins = ["nodeready.pytest_plugin"]
