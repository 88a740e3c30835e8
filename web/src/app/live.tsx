/** The live overview for all pages: one event stream per tab, closed while the tab is hidden. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";

import { api } from "../api/client";
import type { Overview } from "../api/contract";
import { type Liveness, OverviewStream } from "../api/events";

export const OVERVIEW_KEY = ["overview"];

const fetchOverview = () => api.get<Overview>("/overview");

const Context = createContext<Liveness>("connecting");

export function useLiveness(): Liveness {
  return useContext(Context);
}

/** Fetches the first overview, so that a page has data before the stream delivers an event. */
export function useOverview() {
  return useQuery({ queryKey: OVERVIEW_KEY, queryFn: fetchOverview, staleTime: Infinity });
}

export function LiveProvider({ children }: { children: ReactNode }) {
  const queryClient = useQueryClient();
  const [liveness, setLiveness] = useState<Liveness>("connecting");

  useEffect(() => {
    const stream = new OverviewStream(
      { overview: (overview) => queryClient.setQueryData(OVERVIEW_KEY, overview), liveness: setLiveness },
      fetchOverview,
    );
    // Browsers limit the connections per host: background tabs must not hold them all.
    const onVisibilityChange = () => (document.hidden ? stream.stop() : stream.start());
    onVisibilityChange();
    document.addEventListener("visibilitychange", onVisibilityChange);
    return () => {
      document.removeEventListener("visibilitychange", onVisibilityChange);
      stream.stop();
    };
  }, [queryClient]);

  return <Context value={liveness}>{children}</Context>;
}
