package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"kafscale/clients/puppet"
)

// The reader offers turns too, but ranges first.
const strategy = "range"

const pause = 50 * time.Millisecond
const batch = 50

func join(ctx context.Context, orders puppet.Orders, diary *puppet.Diary) error {
	if orders.Strategy != strategy {
		return fmt.Errorf("%w: %s", puppet.ErrUnsupported, orders.Strategy)
	}
	owned := &ownership{topic: orders.Topic, diary: diary}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:           []string{orders.Address},
		Topic:             orders.Topic,
		GroupID:           orders.Group,
		SessionTimeout:    orders.Session(),
		HeartbeatInterval: orders.Heartbeat(),
		MaxWait:           wait,
		Logger:            kafka.LoggerFunc(owned.logged),
	})
	for ctx.Err() == nil {
		if err := work(ctx, reader, diary); err != nil {
			return errors.Join(err, reader.Close())
		}
	}
	return reader.Close()
}

// Reads what comes before long, and commits it.
func work(ctx context.Context, reader *kafka.Reader, diary *puppet.Diary) error {
	soon, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	messages := []kafka.Message{}
	for len(messages) < batch {
		message, err := reader.FetchMessage(soon)
		if err != nil && soon.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		diary.Read(int32(message.Partition), message.Offset, message.Offset+1)
		messages = append(messages, message)
	}
	if len(messages) == 0 {
		return nil
	}
	if err := reader.CommitMessages(context.Background(), messages...); err != nil {
		diary.Refused(err)
		return nil
	}
	for _, message := range messages {
		diary.Committed(int32(message.Partition), message.Offset+1)
	}
	return nil
}

// What the reader owns, it tells its log only.
type ownership struct {
	topic      string
	diary      *puppet.Diary
	partitions []int32
}

func (o *ownership) logged(text string, values ...any) {
	switch {
	case strings.HasPrefix(text, "subscribed to topics and partitions"):
		o.partitions = o.numbers(fmt.Sprintf("%+v", values[0]))
		if len(o.partitions) > 0 {
			o.diary.Assigned(o.partitions...)
		}
	case strings.HasPrefix(text, "stopped commit for group") && len(o.partitions) > 0:
		o.diary.Revoked(o.partitions...)
		o.partitions = nil
	}
}

// The partitions in a text such as `map[{topic:orders partition:3}:17]`.
func (o *ownership) numbers(text string) []int32 {
	found := []int32{}
	for _, rest := range strings.Split(text, "{topic:"+o.topic+" partition:")[1:] {
		var number int32
		if _, err := fmt.Sscanf(rest, "%d}", &number); err != nil {
			panic(err)
		}
		found = append(found, number)
	}
	return found
}
