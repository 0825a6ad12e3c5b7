import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Who may come in, and how. */
export interface Access {
  /** Who has to sign in with SASL PLAIN, SCRAM-SHA-512, or a token of that name. */
  readonly user?: { readonly name: string; readonly password: string };
  /** PEM: who the brokers are, key first, and who signs those whom they let in. */
  readonly tls?: { readonly identity: string; readonly trusted: string };
}

export interface BrokerConfig {
  readonly id: number;
  readonly own: number;
  readonly peers: number;
  readonly inside: number;
  readonly shown: number;
  readonly voters: string;
  readonly count: number;
  readonly folder: string;
  readonly user: Access['user'];
  readonly tls: Access['tls'];
}

/** A broker's properties: small, quick to start, without topics made by first use. */
export function configOf(config: BrokerConfig): Record<string, string> {
  const { id, own, peers, inside, shown, voters, count, folder, user, tls } = config;
  const replicas = String(Math.min(count, 3));
  const least = String(Math.min(count, 2));
  const clients = `${user === undefined ? '' : 'SASL_'}${tls === undefined ? 'PLAINTEXT' : 'SSL'}`;
  return {
    'process.roles': 'broker,controller',
    'node.id': String(id),
    'controller.quorum.voters': voters,
    'controller.listener.names': 'PEERS',
    listeners: `CLIENTS://127.0.0.1:${own},INSIDE://127.0.0.1:${inside},PEERS://127.0.0.1:${peers}`,
    'advertised.listeners': `CLIENTS://127.0.0.1:${shown},INSIDE://127.0.0.1:${inside}`,
    'listener.security.protocol.map': `CLIENTS:${clients},INSIDE:PLAINTEXT,PEERS:PLAINTEXT`,
    'inter.broker.listener.name': 'INSIDE',
    'auto.create.topics.enable': 'false',
    'offsets.topic.replication.factor': replicas,
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': least,
    'min.insync.replicas': least,
    'group.initial.rebalance.delay.ms': '0',
    'group.min.session.timeout.ms': '1000',
    'broker.session.timeout.ms': '6000',
    'log.cleaner.dedupe.buffer.size': '2097152',
    ...(user === undefined ? {} : signIn(user)),
    ...(tls === undefined ? {} : identity(tls, folder)),
  };
}

const MODULE = 'org.apache.kafka.common.security';

/** Only who has signed in, and has been given the right, may do anything. */
function signIn({ name, password }: NonNullable<Access['user']>): Record<string, string> {
  const login = 'listener.name.clients';
  return {
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-512,OAUTHBEARER',
    [`${login}.plain.sasl.jaas.config`]: `${MODULE}.plain.PlainLoginModule required user_${name}="${password}";`,
    [`${login}.scram-sha-512.sasl.jaas.config`]: `${MODULE}.scram.ScramLoginModule required;`,
    // Takes unsigned tokens.
    [`${login}.oauthbearer.sasl.jaas.config`]: `${MODULE}.oauthbearer.OAuthBearerLoginModule required;`,
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'super.users': 'User:ANONYMOUS',
  };
}

function identity(
  { identity: pem, trusted }: NonNullable<Access['tls']>,
  folder: string,
): Record<string, string> {
  const [own, others] = [join(folder, 'identity.pem'), join(folder, 'trusted.pem')];
  writeFileSync(own, pem);
  writeFileSync(others, trusted);
  return {
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': own,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': others,
    // Without the listener's name it does not count beside SASL.
    'listener.name.clients.ssl.client.auth': 'required',
  };
}
