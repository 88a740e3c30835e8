import type { TopicCost } from "../../api/contract";
import { money } from "../../lib/format";
import classes from "./CostBars.module.css";

interface Props {
  topics: TopicCost[];
  currency: string;
}

/** The cost of each topic as a bar chart. */
export function CostBars({ topics, currency }: Props) {
  const highest = Math.max(...topics.map(({ costPerDay }) => costPerDay), Number.MIN_VALUE);
  return (
    <div className={classes.bars}>
      {topics.map(({ topic, costPerDay }) => (
        <div key={topic} className={classes.row}>
          <span className={classes.name} title={topic}>
            {topic}
          </span>
          <span className={classes.track}>
            <span className={classes.bar} style={{ width: `${(100 * costPerDay) / highest}%` }} />
          </span>
          <span className={classes.value}>{money(costPerDay, currency)}</span>
        </div>
      ))}
    </div>
  );
}
