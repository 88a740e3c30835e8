package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"kafscale/clients/puppet"
)

var strategies = map[string][]kgo.GroupOpt{
	"cooperative-sticky": {kgo.Balancers(kgo.CooperativeStickyBalancer())},
	"range":              {kgo.Balancers(kgo.RangeBalancer())},
	"consumer":           {kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer()},
}

// A rebalance waits until what was polled is committed. The strategy "consumer" is the protocol in
// which the broker assigns.
func join(ctx context.Context, orders puppet.Orders, diary *puppet.Diary) error {
	strategy, found := strategies[orders.Strategy]
	if !found {
		return fmt.Errorf("%w: %s", puppet.ErrUnsupported, orders.Strategy)
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(orders.Address),
		kgo.ConsumeTopics(orders.Topic),
		kgo.ConsumerGroup(orders.Group),
		kgo.SessionTimeout(orders.Session()),
		kgo.HeartbeatInterval(orders.Heartbeat()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(telling(orders.Topic, diary.Assigned)),
		kgo.OnPartitionsRevoked(telling(orders.Topic, diary.Revoked)),
		kgo.OnPartitionsLost(telling(orders.Topic, diary.Lost)),
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
			diary.Failed(err)
		}
		commit(consumer, fetches, diary)
		consumer.AllowRebalance()
	}
}

func commit(consumer *kgo.Client, fetches kgo.Fetches, diary *puppet.Diary) {
	ends := map[int32]int64{}
	fetches.EachPartition(func(fetched kgo.FetchTopicPartition) {
		if count := len(fetched.Records); count > 0 {
			end := fetched.Records[count-1].Offset + 1
			diary.Read(fetched.Partition, fetched.Records[0].Offset, end)
			ends[fetched.Partition] = end
		}
	})
	ctx, cancel := within()
	defer cancel()
	if err := consumer.CommitRecords(ctx, fetches.Records()...); err != nil {
		diary.Refused(err)
		return
	}
	for partition, end := range ends {
		diary.Committed(partition, end)
	}
}

func telling(
	topic string, tell func(...int32),
) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		if len(partitions[topic]) > 0 {
			tell(partitions[topic]...)
		}
	}
}
