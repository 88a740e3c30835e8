// Package driver lets a test drive a Kafka client: it reads one JSON command a line from standard
// input and writes one JSON response a line to standard output. All clients implement the same
// commands, so that the test is written once. A program that is started as a member of a consumer
// group executes no commands; it prints the events of the member.
package driver

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
)

// ErrUnsupported is returned for commands that the client library does not support.
var ErrUnsupported = errors.New("this client does not support it")

// UnknownCode is Kafka's code for errors that have none of their own.
const UnknownCode = -1

// Record is what a producer sends and a consumer receives; null and empty are different things.
type Record struct {
	Partition   int32       `json:"partition"`
	Offset      int64       `json:"offset"`
	TimestampMs int64       `json:"timestamp_ms"`
	Key         *string     `json:"key"`
	Value       *string     `json:"value"`
	Headers     [][2]string `json:"headers"`
}

// ProducerOptions configure a producer; empty fields keep the client's defaults. A client keeps one
// producer for each combination.
type ProducerOptions struct {
	Codec      string `json:"codec"`
	Acks       string `json:"acks"` // "0", "1" or "all".
	Idempotent bool   `json:"idempotent"`
	// The records of one command are a transaction; `Abort` aborts it.
	TransactionalID string `json:"transactional_id"`
	Abort           bool   `json:"abort"`
}

// Command is one line of input; `command` names the method of Client.
type Command struct {
	Name        string            `json:"command"`
	Topic       string            `json:"topic"`
	Partitions  int32             `json:"partitions"`
	Partition   int32             `json:"partition"`
	Offset      int64             `json:"offset"`
	TimestampMs int64             `json:"timestamp_ms"`
	Count       int               `json:"count"`
	Committed   bool              `json:"committed"` // Whether only committed records are read.
	Configs     map[string]string `json:"configs"`
	Records     []Record          `json:"records"`
	Producer    ProducerOptions   `json:"producer"`
}

// Client is implemented by every client program. As in ListOffsets, timestamp -1 is the end of a
// partition and -2 its beginning.
type Client interface {
	Create(topic string, partitions int32, configs map[string]string) error
	Delete(topic string) error
	Topics() (map[string]int, error)
	Configs(topic string) (map[string]string, error)
	Alter(topic string, configs map[string]string) error
	Produce(topic string, records []Record, options ProducerOptions) ([]int64, error)
	Consume(topic string, partition int32, offset int64, count int, committed bool) ([]Record, error)
	Offset(topic string, partition int32, timestampMs int64) (int64, error)
	Trim(topic string, partition int32, offset int64) error
	CodeOf(err error) int
}

type failure struct {
	Message     string `json:"message"`
	Code        int    `json:"code"`
	Unsupported bool   `json:"unsupported"`
}

type response struct {
	Result any      `json:"result"`
	Error  *failure `json:"error"`
}

// Main runs the program. With the arguments "member" and MemberOptions it is a member of a consumer
// group until SIGTERM; otherwise the argument is the address of a broker, and it executes commands
// until the input ends.
func Main(connect func(address string) (Client, error), join Join) {
	if os.Args[1] == "member" {
		runMember(join, os.Args[2])
		return
	}
	client, err := connect(os.Args[1])
	if err != nil {
		panic(err)
	}
	input := json.NewDecoder(bufio.NewReader(os.Stdin))
	output := json.NewEncoder(os.Stdout)
	for input.More() {
		var command Command
		if err := input.Decode(&command); err != nil {
			panic(err)
		}
		if err := output.Encode(respond(client, command)); err != nil {
			panic(err)
		}
	}
}

func respond(client Client, command Command) response {
	result, err := execute(client, command)
	if err == nil {
		return response{Result: result}
	}
	return response{Error: &failure{
		Message:     err.Error(),
		Code:        client.CodeOf(err),
		Unsupported: errors.Is(err, ErrUnsupported),
	}}
}

func execute(client Client, c Command) (any, error) {
	switch c.Name {
	case "create":
		return nil, client.Create(c.Topic, c.Partitions, c.Configs)
	case "delete":
		return nil, client.Delete(c.Topic)
	case "topics":
		return client.Topics()
	case "configs":
		return client.Configs(c.Topic)
	case "alter":
		return nil, client.Alter(c.Topic, c.Configs)
	case "produce":
		return client.Produce(c.Topic, c.Records, c.Producer)
	case "consume":
		return client.Consume(c.Topic, c.Partition, c.Offset, c.Count, c.Committed)
	case "offset":
		return client.Offset(c.Topic, c.Partition, c.TimestampMs)
	case "trim":
		return nil, client.Trim(c.Topic, c.Partition, c.Offset)
	}
	panic("unknown command: " + c.Name)
}

// Bytes encodes a text; nil stays nil.
func Bytes(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

// Text decodes bytes; nil stays nil.
func Text(bytes []byte) *string {
	if bytes == nil {
		return nil
	}
	text := string(bytes)
	return &text
}
