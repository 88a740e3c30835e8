// kafka-go: its writer and its reader of single partitions with their defaults, which wait for no
// acknowledgement, and its low-level client for the rest.
package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"

	"kafscale/clients/puppet"
)

const patience = 20 * time.Second

// The writer waits for so long before it sends a batch that is not full: a second, by default.
const linger = 10 * time.Millisecond

// The reader lets the broker wait for so long for new records, and is not closed meanwhile: ten
// seconds, by default.
const wait = 200 * time.Millisecond

var codecs = map[string]kafka.Compression{
	"none":   0,
	"gzip":   kafka.Gzip,
	"snappy": kafka.Snappy,
	"lz4":    kafka.Lz4,
	"zstd":   kafka.Zstd,
}

var acks = map[string]kafka.RequiredAcks{
	"":    kafka.RequireNone,
	"0":   kafka.RequireNone,
	"1":   kafka.RequireOne,
	"all": kafka.RequireAll,
}

type client struct {
	address string
	kafka   *kafka.Client
	// How its writers log in, if one has to.
	transport *kafka.Transport
}

func main() { puppet.Main(connect, join) }

func connect(address string) (puppet.Client, error) {
	transport := &kafka.Transport{}
	if login := puppet.WayIn(); login != nil {
		transport.TLS = login.TLS
		transport.SASL = plain.Mechanism{Username: login.User, Password: login.Password}
	}
	known := &kafka.Client{Addr: kafka.TCP(address), Timeout: patience, Transport: transport}
	return &client{address, known, transport}, nil
}

func (c *client) CodeOf(err error) int {
	var known kafka.Error
	if errors.As(err, &known) {
		return int(known)
	}
	var several kafka.WriteErrors
	if errors.As(err, &several) {
		for _, each := range several {
			if each != nil {
				return c.CodeOf(each)
			}
		}
	}
	return puppet.UnknownCode
}

func (c *client) Create(topic string, partitions int32, configs map[string]string) error {
	entries := []kafka.ConfigEntry{}
	for name, value := range configs {
		entries = append(entries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	answer, err := c.kafka.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{
			Topic:             topic,
			NumPartitions:     int(partitions),
			ReplicationFactor: -1,
			ConfigEntries:     entries,
		}},
	})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (c *client) Delete(topic string) error {
	request := &kafka.DeleteTopicsRequest{Topics: []string{topic}}
	answer, err := c.kafka.DeleteTopics(context.Background(), request)
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (c *client) Topics() (map[string]int, error) {
	answer, err := c.kafka.Metadata(context.Background(), &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, topic := range answer.Topics {
		counts[topic.Name] = len(topic.Partitions)
	}
	return counts, nil
}

func (c *client) Configs(topic string) (map[string]string, error) {
	answer, err := c.kafka.DescribeConfigs(context.Background(), &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		}},
	})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, config := range answer.Resources[0].ConfigEntries {
		found[config.ConfigName] = config.ConfigValue
	}
	return found, answer.Resources[0].Error
}

func (c *client) Alter(topic string, configs map[string]string) error {
	changes := []kafka.IncrementalAlterConfigsRequestConfig{}
	for name, value := range configs {
		changes = append(changes, kafka.IncrementalAlterConfigsRequestConfig{
			Name: name, Value: value, ConfigOperation: kafka.ConfigOperationSet,
		})
	}
	answer, err := c.kafka.IncrementalAlterConfigs(
		context.Background(), &kafka.IncrementalAlterConfigsRequest{
			Resources: []kafka.IncrementalAlterConfigsRequestResource{{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, Configs: changes,
			}},
		})
	if err != nil {
		return err
	}
	return answer.Resources[0].Error
}

func (c *client) Produce(
	topic string, records []puppet.Record, sending puppet.Sending,
) ([]int64, error) {
	if sending.Idempotent {
		return nil, puppet.ErrUnsupported
	}
	offsets := []int64{}
	writer := &kafka.Writer{
		Addr:                   kafka.TCP(c.address),
		Transport:              c.transport,
		Topic:                  topic,
		BatchTimeout:           linger,
		Compression:            codecs[sending.Codec],
		RequiredAcks:           acks[sending.Acks],
		AllowAutoTopicCreation: true,
		Completion: func(messages []kafka.Message, err error) {
			for _, message := range messages {
				offsets = append(offsets, message.Offset)
			}
		},
	}
	sent := make([]kafka.Message, len(records))
	for i, record := range records {
		sent[i] = kafka.Message{Key: puppet.Bytes(record.Key), Value: puppet.Bytes(record.Value)}
		if record.TimestampMs > 0 {
			sent[i].Time = time.UnixMilli(record.TimestampMs)
		}
		for _, header := range record.Headers {
			sent[i].Headers = append(
				sent[i].Headers, kafka.Header{Key: header[0], Value: []byte(header[1])})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := writer.WriteMessages(ctx, sent...)
	return offsets, errors.Join(err, writer.Close())
}

func (c *client) Consume(
	topic string, partition int32, offset int64, count int,
) ([]puppet.Record, error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:   []string{c.address},
		Topic:     topic,
		Partition: int(partition),
		MaxWait:   wait,
		Dialer:    &kafka.Dialer{TLS: c.transport.TLS, SASLMechanism: c.transport.SASL},
	})
	defer reader.Close()
	if err := reader.SetOffset(offset); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found := []puppet.Record{}
	for len(found) < count {
		message, err := reader.ReadMessage(ctx)
		var network net.Error
		if errors.As(err, &network) && ctx.Err() == nil {
			continue // The reader tells of a lost connection, and goes on trying.
		}
		if err != nil {
			return found, err
		}
		found = append(found, received(message))
	}
	return found, nil
}

func received(message kafka.Message) puppet.Record {
	headers := [][2]string{}
	for _, header := range message.Headers {
		headers = append(headers, [2]string{header.Key, string(header.Value)})
	}
	return puppet.Record{
		Partition:   int32(message.Partition),
		Offset:      message.Offset,
		TimestampMs: message.Time.UnixMilli(),
		Key:         puppet.Text(message.Key),
		Value:       puppet.Text(message.Value),
		Headers:     headers,
	}
}

func (c *client) Offset(topic string, partition int32, timestampMs int64) (int64, error) {
	request := kafka.OffsetRequest{Partition: int(partition), Timestamp: timestampMs}
	answer, err := c.kafka.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: {request}},
	})
	if err != nil {
		return -1, err
	}
	found := answer.Topics[topic][0]
	switch timestampMs {
	case kafka.FirstOffset:
		return found.FirstOffset, found.Error
	case kafka.LastOffset:
		return found.LastOffset, found.Error
	}
	for offset := range found.Offsets {
		return offset, found.Error
	}
	return -1, found.Error
}

func (c *client) Trim(string, int32, int64) error { return puppet.ErrUnsupported }
