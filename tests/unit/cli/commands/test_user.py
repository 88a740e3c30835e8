"""How `kafscale user` prints users and client properties."""

from kafscale.cli.commands.user import print_client_properties, print_users


def test_empty_list_names_the_command_to_create_users(capsys):
    print_users([])
    assert "kafscale user create" in capsys.readouterr().out


def test_client_properties_quote_the_user_name(capsys):
    print_client_properties('al"ice', "SCRAM-SHA-512", "SASL_SSL")
    printed = capsys.readouterr().out
    assert "security.protocol=SASL_SSL" in printed
    assert r'ScramLoginModule required username="al\"ice" password="...";' in printed
