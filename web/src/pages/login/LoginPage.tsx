/** The login form. Login is disabled while no user name and password are configured. */
import { Alert, Button, Center, Code, Group, Paper, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { type FormEvent, useEffect, useState } from "react";
import { Navigate, useLocation } from "react-router";

import { ApiError } from "../../api/client";
import { ColorSchemeSwitch } from "../../app/Shell";
import { useSession } from "../../app/session";
import { errorMessage } from "../../components/ErrorState";
import classes from "./LoginPage.module.css";
import { useCountdown } from "./useCountdown";

/** Only paths of this console are accepted, to prevent open redirects. */
function pageToReturnTo(state: unknown): string {
  const from = (state as { from?: unknown } | null)?.from;
  return typeof from === "string" && /^\/(?!\/|login)/.test(from) ? from : "/";
}

export function LoginPage() {
  const { session } = useSession();
  const { state } = useLocation();

  useEffect(() => {
    document.title = "Log in · Kafscale";
  }, []);

  if (session.username !== null) return <Navigate to={pageToReturnTo(state)} replace />;
  return (
    <main className={classes.page}>
      <Group className={classes.corner}>
        <ColorSchemeSwitch />
      </Group>
      <Center mih="100vh" p="md">
        <Paper withBorder shadow="md" p="xl" w={400} maw="100%">
          <Stack>
            <Group gap="sm">
              <img src="/favicon.svg" alt="" width={40} height={40} />
              <Title order={1} size="h2">
                Kafscale
              </Title>
            </Group>
            {session.isConfigured ? <Text c="dimmed">Log in to the console.</Text> : <NotConfigured />}
            <LoginForm isConfigured={session.isConfigured} />
            <Text size="xs" c="dimmed">
              Version {session.version}
            </Text>
          </Stack>
        </Paper>
      </Center>
    </main>
  );
}

function NotConfigured() {
  return (
    <Alert role="alert" color="orange" variant="outline" icon={<IconAlertTriangle aria-hidden />} title="Access is disabled">
      <Text size="sm">
        Login is disabled until <Code>KAFSCALE_UI_USERNAME</Code> and <Code>KAFSCALE_UI_PASSWORD</Code> are set in the environment of the console. Set both and restart the console.
      </Text>
    </Alert>
  );
}

function LoginForm({ isConfigured }: { isConfigured: boolean }) {
  const { login } = useSession();
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [secondsToWait, waitFor] = useCountdown();

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await login({ username, password });
    } catch (error) {
      setPassword("");
      if (error instanceof ApiError && error.status === 429) waitFor(error.retryAfterSeconds ?? 30);
      else setProblem(errorMessage(error));
      setBusy(false);
    }
  }

  return (
    <form onSubmit={(event) => void submit(event)} aria-label="Log in">
      <Stack>
        <TextInput label="User name" autoComplete="username" value={username} onChange={(event) => setUsername(event.currentTarget.value)} disabled={!isConfigured} required autoFocus />
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          disabled={!isConfigured}
          required
          visibilityToggleButtonProps={{ "aria-label": "Show password" }}
        />
        <div role="alert">
          {secondsToWait > 0 ? (
            <Text size="sm" c="var(--ks-bad)">
              Too many attempts. Try again in {secondsToWait} s.
            </Text>
          ) : (
            problem && (
              <Text size="sm" c="var(--ks-bad)">
                {problem}
              </Text>
            )
          )}
        </div>
        <Button type="submit" fullWidth loading={isBusy} disabled={!isConfigured || secondsToWait > 0 || !username || !password}>
          Log in
        </Button>
      </Stack>
    </form>
  );
}
