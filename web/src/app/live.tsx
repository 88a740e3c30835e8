/** The overview, live, for the frame and all pages: one stream a tab, and none while nobody looks. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";

import { api } from "../api/client";
import type { Overview } from "../api/contract";
import { type Liveness, OverviewStream } from "../api/events";

export const OVERVIEW_KEY = ["overview"];

const askForOverview = () => api.get<Overview>("/overview");

const Context = createContext<Liveness>("connecting");

export function useLiveness(): Liveness {
  return useContext(Context);
}

/** The first overview is asked for, so that a page has something to show before the stream does. */
export function useOverview() {
  return useQuery({ queryKey: OVERVIEW_KEY, queryFn: askForOverview, staleTime: Infinity });
}

export function LiveProvider({ children }: { children: ReactNode }) {
  const queryClient = useQueryClient();
  const [liveness, setLiveness] = useState<Liveness>("connecting");

  useEffect(() => {
    const stream = new OverviewStream(
      { overview: (overview) => queryClient.setQueryData(OVERVIEW_KEY, overview), liveness: setLiveness },
      askForOverview,
    );
    // Browsers open few connections to one host: tabs in the background must not hold them all.
    const follow = () => (document.hidden ? stream.stop() : stream.start());
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      stream.stop();
    };
  }, [queryClient]);

  return <Context value={liveness}>{children}</Context>;
}
