// kafka-go: its writer and its reader of single partitions with the defaults (no acknowledgement),
// and its low-level client for the rest.
package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"

	"kafscale/clients/driver"
)

const timeout = 20 * time.Second

// How long the writer waits for more records before it sends a batch; the default is 1 s.
const linger = 10 * time.Millisecond

// How long the broker waits for new records. It delays closing the reader; the default is 10 s.
const maxWait = 200 * time.Millisecond

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
	// TLS and credentials of its writers.
	transport *kafka.Transport
}

func main() { driver.Main(connect, join) }

func connect(address string) (driver.Client, error) {
	transport := &kafka.Transport{}
	if credentials := driver.EnvironmentCredentials(); credentials != nil {
		transport.TLS = credentials.TLS
		transport.SASL = plain.Mechanism{Username: credentials.User, Password: credentials.Password}
	}
	connected := &kafka.Client{Addr: kafka.TCP(address), Timeout: timeout, Transport: transport}
	return &client{address, connected, transport}, nil
}

func (c *client) CodeOf(err error) int {
	var kafkaError kafka.Error
	if errors.As(err, &kafkaError) {
		return int(kafkaError)
	}
	var writeErrors kafka.WriteErrors
	if errors.As(err, &writeErrors) {
		for _, each := range writeErrors {
			if each != nil {
				return c.CodeOf(each)
			}
		}
	}
	return driver.UnknownCode
}

func (c *client) Create(topic string, partitions int32, configs map[string]string) error {
	entries := []kafka.ConfigEntry{}
	for name, value := range configs {
		entries = append(entries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	response, err := c.kafka.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{
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
	return response.Errors[topic]
}

func (c *client) Delete(topic string) error {
	request := &kafka.DeleteTopicsRequest{Topics: []string{topic}}
	response, err := c.kafka.DeleteTopics(context.Background(), request)
	if err != nil {
		return err
	}
	return response.Errors[topic]
}

func (c *client) Topics() (map[string]int, error) {
	response, err := c.kafka.Metadata(context.Background(), &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, topic := range response.Topics {
		counts[topic.Name] = len(topic.Partitions)
	}
	return counts, nil
}

func (c *client) Configs(topic string) (map[string]string, error) {
	response, err := c.kafka.DescribeConfigs(context.Background(), &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		}},
	})
	if err != nil {
		return nil, err
	}
	configs := map[string]string{}
	for _, config := range response.Resources[0].ConfigEntries {
		configs[config.ConfigName] = config.ConfigValue
	}
	return configs, response.Resources[0].Error
}

func (c *client) Alter(topic string, configs map[string]string) error {
	changes := []kafka.IncrementalAlterConfigsRequestConfig{}
	for name, value := range configs {
		changes = append(changes, kafka.IncrementalAlterConfigsRequestConfig{
			Name: name, Value: value, ConfigOperation: kafka.ConfigOperationSet,
		})
	}
	response, err := c.kafka.IncrementalAlterConfigs(
		context.Background(), &kafka.IncrementalAlterConfigsRequest{
			Resources: []kafka.IncrementalAlterConfigsRequestResource{{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, Configs: changes,
			}},
		})
	if err != nil {
		return err
	}
	return response.Resources[0].Error
}

func (c *client) Produce(
	topic string, records []driver.Record, options driver.ProducerOptions,
) ([]int64, error) {
	if options.Idempotent || options.TransactionalID != "" {
		return nil, driver.ErrUnsupported
	}
	offsets := []int64{}
	writer := &kafka.Writer{
		Addr:                   kafka.TCP(c.address),
		Transport:              c.transport,
		Topic:                  topic,
		BatchTimeout:           linger,
		Compression:            codecs[options.Codec],
		RequiredAcks:           acks[options.Acks],
		AllowAutoTopicCreation: true,
		Completion: func(messages []kafka.Message, err error) {
			for _, message := range messages {
				offsets = append(offsets, message.Offset)
			}
		},
	}
	sent := make([]kafka.Message, len(records))
	for i, record := range records {
		sent[i] = kafka.Message{Key: driver.Bytes(record.Key), Value: driver.Bytes(record.Value)}
		if record.TimestampMs > 0 {
			sent[i].Time = time.UnixMilli(record.TimestampMs)
		}
		for _, header := range record.Headers {
			sent[i].Headers = append(
				sent[i].Headers, kafka.Header{Key: header[0], Value: []byte(header[1])})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := writer.WriteMessages(ctx, sent...)
	return offsets, errors.Join(err, writer.Close())
}

func (c *client) Consume(
	topic string, partition int32, offset int64, count int, committed bool,
) ([]driver.Record, error) {
	isolation := kafka.ReadUncommitted
	if committed {
		isolation = kafka.ReadCommitted
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		IsolationLevel: isolation,
		Brokers:        []string{c.address},
		Topic:          topic,
		Partition:      int(partition),
		MaxWait:        maxWait,
		Dialer:         &kafka.Dialer{TLS: c.transport.TLS, SASLMechanism: c.transport.SASL},
	})
	defer reader.Close()
	if err := reader.SetOffset(offset); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	records := []driver.Record{}
	for len(records) < count {
		message, err := reader.ReadMessage(ctx)
		var network net.Error
		if errors.As(err, &network) && ctx.Err() == nil {
			continue // The reader returns the error of a lost connection, and reconnects.
		}
		if err != nil {
			return records, err
		}
		records = append(records, received(message))
	}
	return records, nil
}

func received(message kafka.Message) driver.Record {
	headers := [][2]string{}
	for _, header := range message.Headers {
		headers = append(headers, [2]string{header.Key, string(header.Value)})
	}
	return driver.Record{
		Partition:   int32(message.Partition),
		Offset:      message.Offset,
		TimestampMs: message.Time.UnixMilli(),
		Key:         driver.Text(message.Key),
		Value:       driver.Text(message.Value),
		Headers:     headers,
	}
}

func (c *client) Offset(topic string, partition int32, timestampMs int64) (int64, error) {
	request := kafka.OffsetRequest{Partition: int(partition), Timestamp: timestampMs}
	response, err := c.kafka.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: {request}},
	})
	if err != nil {
		return -1, err
	}
	listed := response.Topics[topic][0]
	switch timestampMs {
	case kafka.FirstOffset:
		return listed.FirstOffset, listed.Error
	case kafka.LastOffset:
		return listed.LastOffset, listed.Error
	}
	for offset := range listed.Offsets {
		return offset, listed.Error
	}
	return -1, listed.Error
}

func (c *client) Trim(string, int32, int64) error { return driver.ErrUnsupported }
