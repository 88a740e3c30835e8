import { useQuery } from "@tanstack/react-query";

import { api, at } from "../../api/client";
import type { Config } from "../../api/contract";
import { Loaded } from "../../components/Loaded";
import { ConfigEditor } from "./ConfigEditor";

export function ConfigsPart({ name }: { name: string }) {
  const query = useQuery({
    queryKey: ["topic", name, "configs"],
    queryFn: ({ signal }) => api.get<Config[]>(at`/topics/${name}/configs`, { signal }),
  });
  return <Loaded query={query}>{(configs) => <ConfigEditor key={name} topic={name} configs={configs} />}</Loaded>;
}
