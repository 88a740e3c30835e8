package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"kafscale/clients/driver"
)

var strategies = map[string][]kgo.GroupOpt{
	"cooperative-sticky": {kgo.Balancers(kgo.CooperativeStickyBalancer())},
	"range":              {kgo.Balancers(kgo.RangeBalancer())},
	"consumer":           {kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer()},
}

// A rebalance waits until the polled records are committed. The strategy "consumer" is the protocol
// of KIP-848, in which the broker assigns.
func join(ctx context.Context, member driver.MemberOptions, events *driver.EventWriter) error {
	strategy, found := strategies[member.Strategy]
	if !found {
		return fmt.Errorf("%w: %s", driver.ErrUnsupported, member.Strategy)
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(member.Address),
		kgo.ConsumeTopics(member.Topic),
		kgo.ConsumerGroup(member.Group),
		kgo.SessionTimeout(member.SessionTimeout()),
		kgo.HeartbeatInterval(member.HeartbeatInterval()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(onChange(member.Topic, events.Assigned)),
		kgo.OnPartitionsRevoked(onChange(member.Topic, events.Revoked)),
		kgo.OnPartitionsLost(onChange(member.Topic, events.Lost)),
	}
	for _, option := range strategy {
		options = append(options, option)
	}
	consumer, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer consumer.CloseAllowingRebalance()
	for {
		fetches := consumer.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			events.Failed(err)
		}
		commit(consumer, fetches, events)
		consumer.AllowRebalance()
	}
}

func commit(consumer *kgo.Client, fetches kgo.Fetches, events *driver.EventWriter) {
	ends := map[int32]int64{}
	fetches.EachPartition(func(fetched kgo.FetchTopicPartition) {
		if count := len(fetched.Records); count > 0 {
			end := fetched.Records[count-1].Offset + 1
			events.Read(fetched.Partition, fetched.Records[0].Offset, end)
			ends[fetched.Partition] = end
		}
	})
	ctx, cancel := withTimeout()
	defer cancel()
	if err := consumer.CommitRecords(ctx, fetches.Records()...); err != nil {
		events.CommitRejected(err)
		return
	}
	for partition, end := range ends {
		events.Committed(partition, end)
	}
}

func onChange(
	topic string, report func(...int32),
) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		if len(partitions[topic]) > 0 {
			report(partitions[topic]...)
		}
	}
}
