from nodeready.check import check


@check("security.container-toolkit", remedy="Install the newest NVIDIA Container Toolkit.")
def test_container_toolkit_has_the_known_fixes(node, expect):
    """Older toolkits let a container out of its walls."""
    expect("security.container-toolkit", node.container_parts.toolkit_is_safe)


@check("security.runc", remedy="Update runc (package containerd.io or runc) and restart the engine.")
def test_runc_has_the_known_fixes(node, expect):
    """Older releases of runc let a container write to the host."""
    expect("security.runc", node.container_parts.runc_is_safe)


@check(
    "security.container-socket",
    remedy="chmod o-w the socket and give users a group, or a rootless engine; let docker listen on no TCP port without TLS.",
)
def test_only_chosen_users_speak_to_the_container_engine(node, expect):
    """Whoever may write to the engine's socket is root on the node."""
    expect("security.container-socket", node.container_parts.open_sockets)
    expect("security.container-socket/tcp", node.container_parts.open_ports)
