import { ScrollArea } from "@mantine/core";
import { Link } from "react-router";

import classes from "./TopicParts.module.css";

export const TOPIC_PARTS = {
  partitions: "Partitions",
  messages: "Messages",
  segments: "Segments",
  consumers: "Consumers",
  producers: "Producers",
  configs: "Configuration",
} as const;

export type TopicPart = keyof typeof TOPIC_PARTS;

export function isPart(value: string | null): value is TopicPart {
  return value !== null && value in TOPIC_PARTS;
}

export function pathOf(name: string, part: TopicPart): string {
  const topic = `/topics/${encodeURIComponent(name)}`;
  if (part === "messages") return `${topic}/messages`;
  return part === "partitions" ? topic : `${topic}?part=${part}`;
}

/** Links rather than tabs: each part has a URL that can be shared or opened in another tab. */
export function TopicParts({ name, part }: { name: string; part: TopicPart }) {
  return (
    <nav aria-label="Topic sections">
      <ScrollArea type="never">
        <ul className={classes.list}>
          {Object.entries(TOPIC_PARTS).map(([each, label]) => (
            <li key={each}>
              <Link className={classes.link} to={pathOf(name, each as TopicPart)} aria-current={each === part ? "page" : undefined}>
                {label}
              </Link>
            </li>
          ))}
        </ul>
      </ScrollArea>
    </nav>
  );
}
