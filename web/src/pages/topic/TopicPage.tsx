import { useParams, useSearchParams } from "react-router";

import { ConsumersPart } from "./ConsumersPart";
import { PartitionsPart } from "./PartitionsPart";
import { SegmentsPart } from "./SegmentsPart";
import { SettingsPart } from "./SettingsPart";
import { TopicFrame } from "./TopicFrame";
import { isPart } from "./TopicParts";

export function TopicPage() {
  const { name = "" } = useParams();
  const [params] = useSearchParams();
  const word = params.get("part");
  const part = isPart(word) && word !== "messages" ? word : "partitions";
  return (
    <TopicFrame name={name} part={part}>
      {(detail) => {
        switch (part) {
          case "segments":
            return <SegmentsPart detail={detail} />;
          case "consumers":
            return <ConsumersPart name={name} />;
          case "settings":
            return <SettingsPart name={name} />;
          default:
            return <PartitionsPart detail={detail} />;
        }
      }}
    </TopicFrame>
  );
}
