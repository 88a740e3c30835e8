package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"kafscale/clients/puppet"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

func join(ctx context.Context, orders puppet.Orders, diary *puppet.Diary) error {
	strategy, found := strategies[orders.Strategy]
	if !found {
		return fmt.Errorf("%w: %s", puppet.ErrUnsupported, orders.Strategy)
	}
	config := sarama.NewConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = orders.Session()
	config.Consumer.Group.Heartbeat.Interval = orders.Heartbeat()
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy()}
	group, err := sarama.NewConsumerGroup([]string{orders.Address}, orders.Group, config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil && err == nil {
		err = group.Consume(ctx, []string{orders.Topic}, reader{diary})
	}
	return errors.Join(err, group.Close())
}

// A reader of all partitions that are claimed, each in a routine of its own.
type reader struct{ diary *puppet.Diary }

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// Commits whenever there is nothing to be read at once.
func (r reader) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	partition := claim.Partition()
	r.diary.Assigned(partition)
	defer r.diary.Revoked(partition)
	var end int64
	for message := range claim.Messages() {
		end = message.Offset + 1
		r.diary.Read(partition, message.Offset, end)
		session.MarkMessage(message, "")
		if len(claim.Messages()) == 0 {
			session.Commit()
			r.diary.Committed(partition, end)
		}
	}
	session.Commit()
	r.diary.Committed(partition, end)
	return nil
}
