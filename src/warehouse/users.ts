import { table } from './definition.ts';

export const INSURANCE = table({
  name: 'insurance',
  description: "Users' latest insurance. The document does not say whose; `member_id` and the insured do.",
  key: [],
  columns: [
    { name: 'payor_code', type: 'text', from: 'payor_code', description: 'the insurer' },
    { name: 'member_id', type: 'text', from: 'member_id', required: true, description: 'the member' },
    { name: 'group_id', type: 'text', from: 'group_id', description: 'the group' },
    {
      name: 'relationship',
      type: 'text',
      from: 'relationship',
      description: 'Self, Spouse, Other; open list',
    },
    { name: 'insured_first_name', type: 'text', from: 'insured.first_name', description: 'first name' },
    { name: 'insured_last_name', type: 'text', from: 'insured.last_name', description: 'last name' },
    { name: 'insured_email', type: 'text', from: 'insured.email', description: 'mail address' },
    { name: 'insured_phone_number', type: 'text', from: 'insured.phone_number', description: 'phone' },
    { name: 'insured_gender', type: 'text', from: 'insured.gender', description: 'gender, open list' },
    { name: 'insured_dob', type: 'date', from: 'insured.dob', description: 'date of birth' },
    {
      name: 'insured_first_line',
      type: 'text',
      from: 'insured.address.first_line',
      description: 'address, first line',
    },
    {
      name: 'insured_second_line',
      type: 'text',
      from: 'insured.address.second_line',
      description: 'address, second line',
    },
    { name: 'insured_city', type: 'text', from: 'insured.address.city', description: 'city' },
    { name: 'insured_state', type: 'text', from: 'insured.address.state', description: 'state' },
    { name: 'insured_zip_code', type: 'text', from: 'insured.address.zip_code', description: 'zip code' },
  ],
});
