package puppet

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// Login is how to come in at a broker that does not take everybody: over TLS, with a password.
type Login struct {
	User, Password string
	TLS            *tls.Config
}

// WayIn is what the environment says about it; nil for a broker that takes everybody.
func WayIn() *Login {
	user := os.Getenv("CLIENT_USER")
	if user == "" {
		return nil
	}
	authority, err := os.ReadFile(os.Getenv("CLIENT_AUTHORITY"))
	if err != nil {
		panic(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	return &Login{user, os.Getenv("CLIENT_PASSWORD"), &tls.Config{RootCAs: trusted}}
}
