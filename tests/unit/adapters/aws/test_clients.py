from instar.adapters.aws.clients import Clients


def test_every_client_has_time_limits_and_standard_retries(aws_session):
    clients = Clients(aws_session)
    made = [
        clients.s3(),
        clients.dynamodb(),
        clients.sqs(),
        clients.ssm(),
        clients.functions(),
        clients.connections("https://api.example.com/live"),
    ]

    for client in made:
        config = client.meta.config
        assert (config.connect_timeout, config.retries["mode"]) == (2, "standard")
        assert config.read_timeout <= 30


def test_the_environment_says_where_the_services_are(aws_session, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")

    assert Clients(aws_session).sqs().meta.endpoint_url == "http://127.0.0.1:4566"
