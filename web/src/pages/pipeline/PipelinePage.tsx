import { useQuery } from "@tanstack/react-query";

import { api } from "../../api/client";
import type { Pipeline } from "../../api/contract";
import { EmptyState } from "../../components/EmptyState";
import { Loaded } from "../../components/Loaded";
import { Note } from "../../components/Note";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { CostPanel } from "./CostPanel";
import { JobPanel } from "./JobPanel";
import { JobsTable } from "./JobsTable";

const REFETCH_INTERVAL_MS = 15_000;

export function PipelinePage() {
  const query = useQuery({
    queryKey: ["pipeline"],
    queryFn: ({ signal }) => api.get<Pipeline>("/pipeline", { signal }),
    refetchInterval: REFETCH_INTERVAL_MS,
  });
  return (
    <Page title="Data pipeline" lead="Runs of the Spark jobs, freshness of their results, and cost of topics.">
      <Loaded query={query}>
        {({ jobs, cost, problem }) => (
          <>
            {problem && (
              <Note tone="warning" title="Job runs could not be read">
                {problem}
              </Note>
            )}
            {jobs.length === 0 && !problem ? (
              <Panel title="Jobs">
                <EmptyState title="No job has run yet.">
                  Every run writes a run record. Start a job, for example the cost report, with <code>kafscale spark report</code>.
                </EmptyState>
              </Panel>
            ) : (
              <JobsTable jobs={jobs} />
            )}
            {cost && <CostPanel report={cost} />}
            {jobs.map((job) => (
              <JobPanel key={job.job} job={job} />
            ))}
          </>
        )}
      </Loaded>
    </Page>
  );
}
