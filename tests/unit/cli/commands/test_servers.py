"""Commands that run servers: their options, and how they report invalid settings."""


def test_options_of_the_broker_reach_its_settings(kafscale):
    result = kafscale(
        *("broker", "--listen", "here", "--namespace", "a/b", "--security-protocol", "TLS"),
        *("--tls-cert-file", "=x", "--tls-key-file", "=y"),
    )
    assert result.exit_code == 1
    for problem in (
        '--listen: "here" is not an address; expected host:port or :port',
        's3.namespace (--namespace): "a/b"',
        'broker.securityProtocol (--security-protocol): "TLS"',
        'tls.certFile (--tls-cert-file): "=x"',
        'tls.keyFile (--tls-key-file): "=y"',
    ):
        assert problem in result.output
