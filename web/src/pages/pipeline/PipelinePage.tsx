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

const LOOK_MS = 15_000;

export function PipelinePage() {
  const query = useQuery({
    queryKey: ["pipeline"],
    queryFn: ({ signal }) => api.get<Pipeline>("/pipeline", { signal }),
    refetchInterval: LOOK_MS,
  });
  return (
    <Page title="Data pipeline" lead="What the jobs on Spark did, how fresh their results are, and what the topics cost.">
      <Loaded query={query}>
        {({ jobs, cost, problem }) => (
          <>
            {problem && (
              <Note tone="warning" title="The runs of jobs could not be read">
                {problem}
              </Note>
            )}
            {jobs.length === 0 && !problem ? (
              <Panel title="Jobs">
                <EmptyState title="No job has run yet.">
                  Jobs leave a record of each run. Start one, for example the cost report, with <code>kafscale spark report</code>.
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
