package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"kafscale/clients/driver"
)

// The reader also offers round robin, but prefers range.
const strategy = "range"

const pollTimeout = 50 * time.Millisecond
const batchRecordsMax = 50

func join(ctx context.Context, options driver.MemberOptions, events *driver.EventWriter) error {
	if options.Strategy != strategy {
		return fmt.Errorf("%w: %s", driver.ErrUnsupported, options.Strategy)
	}
	owned := &ownership{topic: options.Topic, events: events}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:           []string{options.Address},
		Topic:             options.Topic,
		GroupID:           options.Group,
		SessionTimeout:    options.SessionTimeout(),
		HeartbeatInterval: options.HeartbeatInterval(),
		MaxWait:           maxWait,
		Logger:            kafka.LoggerFunc(owned.onLog),
	})
	for ctx.Err() == nil {
		if err := readAndCommit(ctx, reader, events); err != nil {
			return errors.Join(err, reader.Close())
		}
	}
	return reader.Close()
}

// Reads the records that arrive within `pollTimeout`, and commits them.
func readAndCommit(ctx context.Context, reader *kafka.Reader, events *driver.EventWriter) error {
	polling, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	messages := []kafka.Message{}
	for len(messages) < batchRecordsMax {
		message, err := reader.FetchMessage(polling)
		if err != nil && polling.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		events.Read(int32(message.Partition), message.Offset, message.Offset+1)
		messages = append(messages, message)
	}
	if len(messages) == 0 {
		return nil
	}
	if err := reader.CommitMessages(context.Background(), messages...); err != nil {
		events.CommitRejected(err)
		return nil
	}
	for _, message := range messages {
		events.Committed(int32(message.Partition), message.Offset+1)
	}
	return nil
}

// The owned partitions. The reader reports them only in its log.
type ownership struct {
	topic      string
	events     *driver.EventWriter
	partitions []int32
}

func (o *ownership) onLog(text string, values ...any) {
	switch {
	case strings.HasPrefix(text, "subscribed to topics and partitions"):
		o.partitions = o.parsePartitions(fmt.Sprintf("%+v", values[0]))
		if len(o.partitions) > 0 {
			o.events.Assigned(o.partitions...)
		}
	case strings.HasPrefix(text, "stopped commit for group") && len(o.partitions) > 0:
		o.events.Revoked(o.partitions...)
		o.partitions = nil
	}
}

// The partitions in a text such as `map[{topic:orders partition:3}:17]`.
func (o *ownership) parsePartitions(text string) []int32 {
	partitions := []int32{}
	for _, rest := range strings.Split(text, "{topic:"+o.topic+" partition:")[1:] {
		var number int32
		if _, err := fmt.Sscanf(rest, "%d}", &number); err != nil {
			panic(err)
		}
		partitions = append(partitions, number)
	}
	return partitions
}
