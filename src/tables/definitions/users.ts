import { date, integer, text, timestamp, type TableDefinition } from '../definition.ts';

const USER_CONNECTIONS: TableDefinition = {
  name: 'user_connections',
  description: 'Providers that the users are connected to, one a row.',
  key: ['user_id', 'connection_index'],
  columns: [
    text('user_id', 'the user, UUID', { from: { parent: 'user_id' }, required: true }),
    integer('connection_index', 'position, from 0', { from: { of: 'position' }, required: true }),
    text('provider', 'provider identifier, open list', { from: 'source.slug' }),
    text('provider_name', 'name of the provider', { from: 'source.name' }),
    text('provider_logo', 'logo address', { from: 'source.logo' }),
    timestamp('created_on', 'since when'),
  ],
};

export const USERS: TableDefinition = {
  name: 'users',
  description: 'Users of the team, one a row. Their connections are in `user_connections`.',
  key: ['user_id'],
  columns: [
    text('user_id', 'the user, UUID', { required: true }),
    text('team_id', 'team, UUID'),
    text('client_user_id', "the team's id of the user"),
    timestamp('created_on', 'creation'),
  ],
  nested: [{ at: 'connected_sources', each: 'array', table: USER_CONNECTIONS }],
};

export const INSURANCE: TableDefinition = {
  name: 'insurance',
  description:
    "Users' latest insurance, one user a row. The document does not say whose it is; the pull does.",
  key: ['user_id'],
  columns: [
    text('user_id', 'whose it is, UUID; given by the pull, or with `--set user_id=…`', { required: true }),
    text('payor_code', 'the insurer'),
    text('member_id', 'the member'),
    text('group_id', 'the group'),
    text('relationship', 'Self, Spouse, Other; open list'),
    text('insured_first_name', 'first name', { from: 'insured.first_name' }),
    text('insured_last_name', 'last name', { from: 'insured.last_name' }),
    text('insured_email', 'mail address', { from: 'insured.email' }),
    text('insured_phone_number', 'phone', { from: 'insured.phone_number' }),
    text('insured_gender', 'gender, open list', { from: 'insured.gender' }),
    date('insured_dob', 'date of birth', { from: 'insured.dob' }),
    text('insured_first_line', 'address, first line', { from: 'insured.address.first_line' }),
    text('insured_second_line', 'address, second line', { from: 'insured.address.second_line' }),
    text('insured_city', 'city', { from: 'insured.address.city' }),
    text('insured_state', 'state', { from: 'insured.address.state' }),
    text('insured_zip_code', 'zip code', { from: 'insured.address.zip_code' }),
  ],
};
