import { useParams, useSearchParams } from "react-router";

import { ConfigsPart } from "./ConfigsPart";
import { ConsumersPart } from "./ConsumersPart";
import { PartitionsPart } from "./PartitionsPart";
import { ProducersPart } from "./ProducersPart";
import { SegmentsPart } from "./SegmentsPart";
import { TopicFrame } from "./TopicFrame";
import { isPart } from "./TopicParts";

export function TopicPage() {
  const { name = "" } = useParams();
  const [params] = useSearchParams();
  const requested = params.get("part");
  const part = isPart(requested) && requested !== "messages" ? requested : "partitions";
  return (
    <TopicFrame name={name} part={part}>
      {(detail) => {
        switch (part) {
          case "segments":
            return <SegmentsPart detail={detail} />;
          case "consumers":
            return <ConsumersPart name={name} />;
          case "producers":
            return <ProducersPart name={name} />;
          case "configs":
            return <ConfigsPart name={name} />;
          default:
            return <PartitionsPart detail={detail} />;
        }
      }}
    </TopicFrame>
  );
}
