/** The session for all pages: fetched once, changed by login and logout, ended by a 401 response. */
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
  if (!control) throw new Error("useSession must be called inside a SessionProvider.");
  return control;
}

async function fetchSession(): Promise<Session> {
  const session = await api.get<Session>("/session");
  rememberSession(session);
  return session;
}

function ignoreUnauthorized(error: unknown): void {
  if (!(error instanceof ApiError && error.status === 401)) throw error;
}

export function SessionProvider({ children }: { children: ReactNode }) {
  const queryClient = useQueryClient();
  const { data: session, error, refetch } = useQuery({ queryKey: KEY, queryFn: fetchSession, staleTime: Infinity });

  const replaceSession = useCallback(
    (next: Session) => {
      rememberSession(next);
      // Cached data of the previous user must not be shown to the next one.
      queryClient.removeQueries({ predicate: (query) => query.queryKey[0] !== KEY[0] });
      queryClient.setQueryData(KEY, next);
    },
    [queryClient],
  );

  const clearSession = useCallback(() => {
    const last = queryClient.getQueryData<Session>(KEY);
    if (last) replaceSession({ ...last, username: null, csrfToken: null, expiresAtMs: null });
  }, [queryClient, replaceSession]);

  useEffect(() => onSessionEnd(clearSession), [clearSession]);

  const control = useMemo<SessionControl | null>(
    () =>
      session
        ? {
            session,
            login: async (login) => replaceSession(await api.post<Session>("/session", login)),
            logout: async () => {
              await api.delete("/session").catch(ignoreUnauthorized);
              clearSession();
            },
          }
        : null,
    [session, replaceSession, clearSession],
  );

  if (!control) {
    return <Center mih="100vh">{error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <Loader aria-label="Loading console" />}</Center>;
  }
  return <Context value={control}>{children}</Context>;
}
