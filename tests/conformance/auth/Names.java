/* Writes names of certificates, and what rules make of names, as Java and Kafka do.

A line is `name DER` or `rule RULES NAME`, everything in hexadecimal digits; so is each answer. */

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

class Names {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ", -1);
            System.out.println("=" + HexFormat.of().formatHex(answer(words).getBytes(UTF_8)));
        }
    }

    static String answer(String[] words) throws Exception {
        byte[] first = HexFormat.of().parseHex(words[1]);
        if (words[0].equals("name")) {
            return new X500Principal(first).getName();
        }
        String name = new String(HexFormat.of().parseHex(words[2]), UTF_8);
        return SslPrincipalMapper.fromRules(new String(first, UTF_8)).getName(name);
    }
}
