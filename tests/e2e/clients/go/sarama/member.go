package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"kafscale/clients/driver"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

func join(ctx context.Context, options driver.MemberOptions, events *driver.EventWriter) error {
	strategy, found := strategies[options.Strategy]
	if !found {
		return fmt.Errorf("%w: %s", driver.ErrUnsupported, options.Strategy)
	}
	config := sarama.NewConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = options.SessionTimeout()
	config.Consumer.Group.Heartbeat.Interval = options.HeartbeatInterval()
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy()}
	group, err := sarama.NewConsumerGroup([]string{options.Address}, options.Group, config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil && err == nil {
		err = group.Consume(ctx, []string{options.Topic}, reader{events})
	}
	return errors.Join(err, group.Close())
}

// Reads the claimed partitions, each in a goroutine.
type reader struct{ events *driver.EventWriter }

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// Commits whenever no further record is buffered.
func (r reader) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	partition := claim.Partition()
	r.events.Assigned(partition)
	defer r.events.Revoked(partition)
	var end int64
	for message := range claim.Messages() {
		end = message.Offset + 1
		r.events.Read(partition, message.Offset, end)
		session.MarkMessage(message, "")
		if len(claim.Messages()) == 0 {
			session.Commit()
			r.events.Committed(partition, end)
		}
	}
	session.Commit()
	r.events.Committed(partition, end)
	return nil
}
