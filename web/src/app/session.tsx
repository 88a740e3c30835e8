/** Who is logged in, for all pages: asked for once, changed by logging in and out, and ended by the server. */
import { Center, Loader } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo } from "react";

import { ApiError, api, onSessionEnd, rememberSession } from "../api/client";
import type { Login, Session } from "../api/contract";
import { ErrorState } from "../components/ErrorState";

const KEY = ["session"];

interface SessionControl {
  session: Session;
  login: (login: Login) => Promise<void>;
  logout: () => Promise<void>;
}

const Context = createContext<SessionControl | null>(null);

export function useSession(): SessionControl {
  const control = useContext(Context);
  if (!control) throw new Error("useSession has to be called inside a SessionProvider.");
  return control;
}

async function askForSession(): Promise<Session> {
  const session = await api.get<Session>("/session");
  rememberSession(session);
  return session;
}

function unlessItHasEnded(error: unknown): void {
  if (!(error instanceof ApiError && error.status === 401)) throw error;
}

export function SessionProvider({ children }: { children: ReactNode }) {
  const queryClient = useQueryClient();
  const { data: session, error, refetch } = useQuery({ queryKey: KEY, queryFn: askForSession, staleTime: Infinity });

  const enter = useCallback(
    (next: Session) => {
      rememberSession(next);
      // What one user saw is not for the next one.
      queryClient.removeQueries({ predicate: (query) => query.queryKey[0] !== KEY[0] });
      queryClient.setQueryData(KEY, next);
    },
    [queryClient],
  );

  const leave = useCallback(() => {
    const last = queryClient.getQueryData<Session>(KEY);
    if (last) enter({ ...last, username: null, csrfToken: null, expiresAtMs: null });
  }, [queryClient, enter]);

  useEffect(() => onSessionEnd(leave), [leave]);

  const control = useMemo<SessionControl | null>(
    () =>
      session
        ? {
            session,
            login: async (login) => enter(await api.post<Session>("/session", login)),
            logout: async () => {
              await api.delete("/session").catch(unlessItHasEnded);
              leave();
            },
          }
        : null,
    [session, enter, leave],
  );

  if (!control) {
    return <Center mih="100vh">{error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <Loader aria-label="Loading the console" />}</Center>;
  }
  return <Context value={control}>{children}</Context>;
}
